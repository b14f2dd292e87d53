/** What a path may lead to, and what is said of it: nothing here may wait for somebody to write. */
import { execFileSync } from "node:child_process"
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { afterAll, beforeAll, describe, expect } from "@effect/vitest"
import { ConfigProvider, Effect, Result } from "effect"
import { loadJob } from "../../src/jobs/LoadJob.ts"
import { checkFile, readTextFile, renderProblem } from "../../src/base/DurableFile.ts"
import { resolveReference, Secrets } from "../../src/jobs/Secrets.ts"
import { readRecordSchemas } from "../../src/records/RecordSchema.ts"
import { readFaults, readReading } from "../../src/sandbox/readings/SettingFiles.ts"
import { effect, withLayer } from "../harness/Steps.ts"
import { sharedFolder } from "../harness/Folder.ts"

const folder = sharedFolder()
const at = (name: string) => join(folder, name)
const socket = createServer()

beforeAll(async () => {
  execFileSync("mkfifo", [at("pipe")])
  symlinkSync(at("pipe"), at("link"))
  writeFileSync(at("text"), "\uFEFFseñal\n")
  writeFileSync(at("latin1"), Buffer.from("se\xf1al", "latin1"))
  writeFileSync(at("sparse"), "")
  truncateSync(at("sparse"), 1_000_000_000)
  await new Promise<void>((resolve) => void socket.listen(at("socket"), resolve))
})
afterAll(() => new Promise<void>((resolve) => void socket.close(() => resolve())))

describe("a file that somebody names", () => {
  effect.each([
    ["text", Result.succeed("señal\n")],
    ["nothing", Result.fail("there is no such file")],
    ["pipe", Result.fail("it is a named pipe, not a file")],
    ["link", Result.fail("it is a named pipe, not a file")],
    [".", Result.fail("it is a folder, not a file")],
    ["socket", Result.fail("it is a socket, not a file")],
    ["sparse", Result.fail("it is larger than 64 MB")],
    ["latin1", Result.fail("it is not UTF-8")],
  ] as const)("is read when it is a regular file of a fitting size: %s", function* ([name, expected]) {
    expect(yield* Effect.result(readTextFile(at(name), 64_000_000))).toEqual(expected)
    // Who opens the file itself is told the same, but for what only reading shows.
    const checked = yield* Effect.result(checkFile(at(name), 64_000_000))
    const unread = name === "text" || name === "latin1"
    expect(checked).toEqual(unread ? Result.succeed(undefined) : expected)
  })

  effect("is refused if it is a device, or has no size and never ends", function* () {
    const reasons = yield* Effect.forEach(["/dev/zero", "/proc/self/environ"], (path) =>
      Effect.flip(readTextFile(path, 16)),
    )
    expect(reasons).toEqual(["it is a device, not a file", "it is larger than 16 bytes"])
  })
})

const problemsOf = (name: string, source: string) =>
  Effect.gen(function* () {
    writeFileSync(at(name), source)
    const loaded = yield* Effect.flip(loadJob(at(name)))
    return loaded.problems.map((one) => renderProblem(one).replaceAll(`${folder}/`, ""))
  }).pipe(Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnvRecord({})))

const job = (customers: string) =>
  `name: a\nservice: sandbox\nengines: [sandbox-bank:website]\ncustomers:\n  - ${customers}\n`

describe("a named pipe does not block a command", () => {
  const { live } = withLayer(NodeServices.layer)
  live("as any file that a job, a command or the service is given", function* () {
    const why = "(it is a named pipe, not a file)"
    const { problems } = yield* Effect.flip(loadJob(at("pipe")))
    const message = `the job file cannot be read ${why}`
    expect(problems).toEqual([{ file: at("pipe"), line: 1, column: 1, message }])
    for (const kind of ["csv", "ndjson", "parquet"]) {
      execFileSync("mkfifo", [at(`pipe.${kind}`)])
      expect(yield* problemsOf("customers.yaml", job(`from: pipe.${kind}`))).toEqual([
        `customers.yaml:5:11: \`pipe.${kind}\` cannot be read ${why}`,
      ])
    }
    mkdirSync(at("schemas/results"), { recursive: true })
    execFileSync("mkfifo", [at("schemas/results/accounts.yaml")])
    const source = `${job("id: c-1")}schemas: schemas\n`
    expect(yield* problemsOf("sources.yaml", source)).toEqual([
      `schemas/results/accounts.yaml:1:1: this results source cannot be read ${why}`,
    ])
    const resolved = Effect.provide(resolveReference({ _tag: "File", path: at("pipe") }), Secrets.layer)
    const error = yield* Effect.flip(resolved)
    expect(error.message).toBe(`file:${at("pipe")}: it cannot be read ${why}`)
    mkdirSync(at("records"))
    execFileSync("mkfifo", [at("records/a.yaml")])
    expect([
      (yield* Effect.flip(readFaults(at("pipe")))).message,
      (yield* Effect.flip(readReading(at("pipe")))).message,
      (yield* Effect.flip(readRecordSchemas(at("records")))).message,
    ]).toEqual([
      `${at("pipe")}:1:1: the faults file cannot be read ${why}`,
      `${at("pipe")}:1:1: the reading file cannot be read ${why}`,
      `${at("records/a.yaml")}:1:1: cannot be read: it is a named pipe, not a file`,
    ])
  })
})
