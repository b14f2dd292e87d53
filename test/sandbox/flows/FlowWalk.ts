/**
 * Walks a flow session's widget for tests: a walk is a list of texts, one step each, so that a table of
 * walks can be read. Every step has to be answered with 200.
 */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Caller, field, textField, type Answer } from "../server/Caller.ts"

export const taxes = "es-tax-agency:website"
export const nightStart = Date.UTC(2026, 10, 21, 1)

/** What a connection sends: the words are read from the username. */
export const connection = (words: string, engine_reference = taxes) => ({
  engine_reference,
  parameters: { username: words, password: "correct horse" },
})

/**
 * `start`, `consent`, `leave`, `cancel`, `client-cancel`, `wait SECONDS`, `connect WORDS`, `university WORDS`
 * (another source), `answer CODE`.
 */
export const walk = (session_id: string, steps: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const caller = yield* Caller
    let last: Answer | undefined
    for (const step of steps) {
      const [name = "", words = ""] = step.split(" ")
      if (name === "wait") {
        yield* TestClock.adjust(`${Number(words)} seconds`)
        continue
      }
      const bodies: Readonly<Record<string, object>> = {
        start: {},
        consent: {},
        connect: connection(words),
        university: {
          engine_reference: "es-university:website",
          parameters: { campus_user: words, campus_password: "correct horse" },
        },
        answer: { code: words },
      }
      const body = bodies[name]
      last = yield* caller.step(session_id, name === "university" ? "connect" : name, body)
      expect([step, last.status, field(last, "detail")]).toEqual([step, 200, undefined])
    }
    return last
  })

/** Creates a session and walks it. */
export const walked = (behaviour: string, steps: ReadonlyArray<string>, more: object = {}) =>
  Effect.gen(function* () {
    const caller = yield* Caller
    const created = yield* caller.createSession({ customer_id: "c-1", behaviour, ...more })
    expect([created.status, field(created, "detail")]).toEqual([201, undefined])
    const session_id = textField(created, "session_id")
    yield* walk(session_id, steps)
    return { caller, session_id }
  })

/** Every object with `product` and `sub_family`, wherever it stands. */
export const recordsIn = (value: unknown): ReadonlyArray<Readonly<Record<string, unknown>>> => {
  if (typeof value !== "object" || value === null) return []
  const inner = Object.values(value).flatMap(recordsIn)
  return "product" in value && "sub_family" in value ? [{ ...value }, ...inner] : inner
}

/** The records of a results answer, as texts that can be compared. */
export const recordTexts = (answer: Answer): ReadonlyArray<string> =>
  recordsIn(field(answer, "data")).map((record) => JSON.stringify(record))
