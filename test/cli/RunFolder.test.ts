/** What a run writes beside its tables is whole, on a disk that is full too. */
import { anId } from "../harness/Id.ts"
import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { prepareOutput, writeRunFile } from "../../src/cli/OutputFolder.ts"
import { faultyCalls, refusal, refusingFrom, withCalls } from "../base/FaultyCalls.ts"

const base = mkdtempSync(join(tmpdir(), "nightjar-run-folder-"))
afterAll(() => rmSync(base, { recursive: true, force: true }))
const fresh = (): string => mkdtempSync(join(base, "o-"))
const run_id = anId("nightly.2026-11-21")
const write = (output: string, text: string) =>
  writeRunFile({ output, run_id, share: "group" }, "summary.json", text)
const pathIn = (output: string) => join(output, "runs", run_id, "summary.json")

describe("the summary of a run", () => {
  it.effect("is complete if the disk accepts it in pieces, and the group may read it", () =>
    Effect.gen(function* () {
      const output = fresh()
      const text = "x".repeat(60_008)
      yield* withCalls(faultyCalls({ writeBytesMax: 4_096 }).calls)(write(output, text))
      assert.strictEqual(readFileSync(pathIn(output), "utf8"), text)
      assert.strictEqual(statSync(pathIn(output)).mode & 0o777, 0o640)
    }),
  )

  it.effect("is the previous one if the disk refuses the rest, and the error names file and step", () =>
    Effect.gen(function* () {
      const output = fresh()
      yield* write(output, "the first one")
      const { calls } = faultyCalls({
        writeBytesMax: 4_096,
        refuse: (name, nth) => (name === "write" && nth > 5 ? refusal("ENOSPC", name) : undefined),
      })
      const { _tag, message } = yield* Effect.flip(withCalls(calls)(write(output, "x".repeat(60_008))))
      assert.deepStrictEqual(
        [_tag, message, readFileSync(pathIn(output), "utf8")],
        [
          "Refused",
          `the output folder cannot be written: ${pathIn(output)}: cannot write: no space left on device (ENOSPC); the previous version is unchanged`,
          "the first one",
        ],
      )
    }),
  )

  it("is the previous one on a full disk, and no line of the log is cut short", (context) => {
    if (spawnSync("unshare", ["-rm", "true"]).status !== 0) return context.skip()
    const disk = fresh()
    const script = join(import.meta.dirname, "smallDisk.ts")
    const command = 'mount -t tmpfs -o size=80k tmpfs "$1" && exec "$2" "$3" "$1"'
    const answer = execFileSync("unshare", ["-rm", "sh", "-c", command, "sh", disk, process.execPath, script])
    assert.deepStrictEqual(JSON.parse(answer.toString()), {
      first: "written",
      second:
        "the output folder cannot be written: /summary.json: cannot write: no space left on device (ENOSPC); the previous version is unchanged",
      stands: "the first one",
      left: ["summary.json"],
      log: { kinds: ["whole", "end"], isShort: true, goesOn: true },
    })
  }, 60_000)
})

describe("the folder of reports and logs", () => {
  it.effect("is shared with the group, unless the tables have pseudonyms", () =>
    Effect.gen(function* () {
      const output = join(fresh(), "new")
      const modes = () => [output, join(output, "runs")].map((path) => statSync(path).mode & 0o777)
      yield* prepareOutput(output, ["group"])
      assert.deepStrictEqual(modes(), [0o750, 0o750])
      writeFileSync(join(output, "pseudonyms.json"), "{}")
      yield* prepareOutput(output, ["group"])
      assert.deepStrictEqual(modes(), [0o750, 0o700])
    }),
  )
})

describe("an output folder that cannot be claimed", () => {
  it.effect("is reported at whichever step the disk fails, and contains no half marker", () =>
    Effect.gen(function* () {
      const undisturbed = faultyCalls({})
      yield* withCalls(undisturbed.calls)(prepareOutput(join(fresh(), "new"), ["none"]))
      const steps = undisturbed.done.length
      assert.isAbove(steps, 10)
      for (let failing = 1; failing <= steps; failing++) {
        const output = join(fresh(), "new")
        const { _tag, message } = yield* Effect.flip(
          withCalls(refusingFrom(failing).calls)(prepareOutput(output, ["none"])),
        )
        assert.strictEqual(_tag, "Refused")
        assert.match(message, /^the output folder cannot be written: .*: cannot .* i\/o error \(EIO\)/)
        const marker = join(output, ".nightjar")
        if (existsSync(marker))
          assert.match(readFileSync(marker, "utf8"), /\nNightjar writes everything else.*\n$/)
        yield* prepareOutput(output, ["none"])
        assert.deepStrictEqual(
          readdirSync(output).filter((name) => !name.endsWith(".tmp")),
          [".nightjar", "runs"],
        )
      }
    }),
  )
})
