/** A reading as a user gives it: by a job's `service`, or by the command's flag. */
import { writeFileSync } from "node:fs"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { TestClock } from "effect/testing"
import { checkJobs } from "../../../src/cli/Jobs.ts"
import { renderProblem } from "../../../src/base/DurableFile.ts"
import { Caller, field, inProcess, textField } from "../server/Caller.ts"

const job = `name: small
service: { sandbox: { reading: reading.yaml } }
engines: [sandbox-bank:website]
customers: [{ id: c-1, parameters: { username: ok, password: "env:PW" } }]
`

describe("a job with a reading", () => {
  it.effect("is valid with a right one, and wrong with a wrong or a missing one", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped()
      writeFileSync(`${folder}/job.yaml`, job)
      const checked = Effect.map(checkJobs([`${folder}/job.yaml`]), ([one]) => one)
      const check = Effect.map(checked, (one) => [
        one?.job?.name,
        one?.errors.map((error) => renderProblem(error).replace(`${folder}/`, "")),
      ])
      expect(yield* check).toEqual([
        undefined,
        ["reading.yaml:1:1: the reading file cannot be read (there is no such file)"],
      ])
      writeFileSync(`${folder}/reading.yaml`, "flow_ap: absent\nhead: never\n")
      expect(yield* check).toEqual([
        undefined,
        [
          "reading.yaml:1:1: unknown key `flow_ap`; did you mean `flow_api`?",
          "reading.yaml:2:7: `head` cannot be `never`; known names: answers, not_allowed",
        ],
      ])
      writeFileSync(`${folder}/reading.yaml`, "flow_api: absent\n")
      expect(yield* check).toEqual(["small", []])
      expect((yield* checked)?.job?.service).toEqual({
        _tag: "Embedded",
        seed: 1,
        speed: 1,
        faults: undefined,
        reading: `${folder}/reading.yaml`,
      })
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )
})

describe("a service with a reading and a journal", () => {
  it.effect("continues after a restart: ids, ends and an abort that does not show yet", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const journal = `${yield* files.makeTempDirectoryScoped()}/journal.ndjson`
      const reading = {
        execution_id_form: "hex",
        session_id_form: "execution_id",
        abort_effect: "late",
        limits_behaviour_error: "aborted",
        conflict_external_id: "request",
      } as const
      const beyond = {
        customer_id: "c-2",
        features: [{ code: "accounts_read", configurations: { from_date: "2001-01-01" } }],
      }
      const [running, rejected] = yield* Effect.gen(function* () {
        const caller = yield* Caller
        const started = textField(yield* caller.start("queue-0+run-60"), "execution_id")
        yield* TestClock.adjust("5 seconds")
        expect((yield* caller.abort(started)).status).toBe(204)
        return [started, textField(yield* caller.start("ok", beyond), "execution_id")] as const
      }).pipe(Effect.provide(inProcess({ seed: 7, journal, reading })))
      yield* Effect.gen(function* () {
        const caller = yield* Caller
        const reason = (id: string) =>
          Effect.map(caller.read(id), (answer) => [
            field(answer, "status_reason"),
            field(answer, "session_id"),
          ])
        expect(yield* reason(running)).toEqual(["RUNNING", running])
        const conflict = yield* caller.start("ok", { external_execution_id: "mine" })
        expect([conflict.status, field(conflict, "execution_id")]).toEqual([409, running])
        yield* TestClock.adjust("1 second")
        expect(yield* reason(running)).toEqual(["CLIENT_CANCELLED", running])
        expect(yield* reason(rejected)).toEqual(["SYSTEM_CANCELLED", rejected])
      }).pipe(Effect.provide(inProcess({ seed: 7, journal, reading })))
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )
})
