/** The journal's lines are there whole or not at all, whatever the disk takes at once. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { openJournal } from "../../../src/sandbox/state/Journal.ts"
import { faultyCalls, refusal, withCalls } from "../../base/FaultyCalls.ts"

const base = mkdtempSync(join(tmpdir(), "nightjar-journal-"))
afterAll(() => rmSync(base, { recursive: true, force: true }))
const deleted = (execution_id: string) => ({ _tag: "Deleted", at: 0, execution_id }) as const

describe("the journal", () => {
  it.effect(
    "keeps every event on a disk that accepts a few bytes at once, and no half of one that it refuses",
    () =>
      Effect.gen(function* () {
        const path = join(mkdtempSync(join(base, "j-")), "state.ndjson")
        const disk = { isFull: false }
        const { calls } = faultyCalls({
          writeBytesMax: 10,
          refuse: (name, nth) =>
            disk.isFull && name === "write" && nth % 3 === 0 ? refusal("ENOSPC", name) : undefined,
        })
        yield* Effect.scoped(
          Effect.gen(function* () {
            const journal = yield* withCalls(calls)(openJournal(path))
            journal.append([deleted("e-1"), deleted("e-2")])
            disk.isFull = true
            assert.throws(
              () => journal.append([deleted("e-3")]),
              `${path}: cannot write: no space left on device`,
            )
            disk.isFull = false
            journal.append([deleted("e-4")])
          }),
        )
        assert.isTrue(readFileSync(path, "utf8").endsWith("\n"))
        const { events } = yield* Effect.scoped(openJournal(path))
        assert.deepStrictEqual(events, ["e-1", "e-2", "e-4"].map(deleted))
      }),
  )
})
