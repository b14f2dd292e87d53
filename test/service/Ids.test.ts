/** Ids are told apart by the compiler alone: an expectation below that no longer fails stops `npm run types`. */
import { describe, expect, it } from "vitest"
import { Schema } from "effect"
import { EngineReference, ExecutionId, sourceOf, RunId, SessionId, TaskId } from "../../src/service/Ids.ts"
import type { Service } from "../../src/client/Service.ts"
import { StartAnswered } from "../../src/ledger/Fact.ts"

const run_id = RunId.make("r")
const task_id = TaskId.make("r/c/e")
const execution_id = ExecutionId.make("e-1")
const session_id = SessionId.make("s-1")
const external_execution_id = "nj-1"

/** Never called: what the compiler says of it is the test. */
export const mixedUp = (service: Service["Service"]) => [
  // @ts-expect-error a session is no execution
  service.deleteExecution(session_id),
  // @ts-expect-error nor is the id that a start was sent with
  service.readExecution(external_execution_id),
  // @ts-expect-error an execution is no session
  service.downloadAttachment(execution_id, "a-1"),
  // @ts-expect-error a run is no task
  StartAnswered.make({ run_id, task_id: run_id, attempt: 1, answer: "lost" }),
  // @ts-expect-error a task is no run
  StartAnswered.make({ run_id: task_id, task_id, attempt: 1, answer: "lost" }),
]

describe("an id", () => {
  it("is any string, and is written as it came", () => {
    for (const text of ["e-1", "", " 7 ", "sandbox-bank:website", "ü/é\n"])
      for (const kind of [RunId, TaskId, ExecutionId, SessionId, EngineReference])
        expect([
          Schema.decodeUnknownSync(kind)(text),
          Schema.encodeSync(kind)(Schema.decodeUnknownSync(kind)(text)),
        ]).toEqual([text, text])
  })

  it("is not a number, whatever a body says", () => {
    expect(() => Schema.decodeUnknownSync(ExecutionId)(7)).toThrow("Expected string")
  })
})

describe("the source of an engine", () => {
  it("is what stands before the last colon of its reference, whatever channel follows", () => {
    const references = ["bank:website", "es:bank:kiosk", "es:bank", "bank", ":api", "bank:API", ""]
    expect(references.map(sourceOf)).toEqual(["bank", "es:bank", "es", "bank", ":api", "bank", ""])
  })
})
