/** A job that names a file of faults is checked with it, before anything is started. */
import { writeFileSync } from "node:fs"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { checkJobs } from "../../../src/cli/Jobs.ts"
import { renderProblem } from "../../../src/base/DurableFile.ts"

const job = `name: small
service: { sandbox: { faults: faults.yaml } }
engines: [sandbox-bank:website]
customers: [{ id: c-1, parameters: { username: ok, password: "env:PW" } }]
`

describe("a job with a file of faults", () => {
  it.effect("is valid with a right one, and wrong with a wrong or a missing one", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      writeFileSync(`${folder}/job.yaml`, job)
      const check = Effect.map(checkJobs([`${folder}/job.yaml`]), ([checked]) => [
        checked?.job?.name,
        checked?.errors.map((error) => renderProblem(error).replace(`${folder}/`, "")),
      ])
      expect(yield* check).toEqual([
        undefined,
        ["faults.yaml:1:1: the faults file cannot be read (there is no such file)"],
      ])
      writeFileSync(`${folder}/faults.yaml`, "faults:\n  - { on: strtExecution, status: 503, frist: 1 }\n")
      expect(yield* check).toEqual([
        undefined,
        [
          "faults.yaml:2:11: there is no endpoint `strtExecution`; did you mean `startExecution`?",
          "faults.yaml:2:39: unknown key `frist`; did you mean `first`?",
        ],
      ])
      writeFileSync(`${folder}/faults.yaml`, "faults: [{ on: startExecution, status: 503, first: 1 }]\n")
      expect(yield* check).toEqual(["small", []])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )
})
