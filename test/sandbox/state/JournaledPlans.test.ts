/**
 * A restart forgets nothing of what a start decided: settings, moved dates, protected fields, challenges of
 * features and answers to them; and the file holds no value that came encrypted (sections 2.4, 4.1 and 5).
 */
import { constants, publicEncrypt } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { encryptionKey } from "../../../src/sandbox/executions/JudgeRequest.ts"
import { morning } from "../server/BothWays.ts"
import { Caller, inProcess, textField } from "../server/Caller.ts"

const sealed = (text: string): string => {
  const key = { key: encryptionKey.public_key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: "sha256" }
  return `rsa::${publicEncrypt(key, Buffer.from(text)).toString("base64")}`
}
const canary = "canary-of-a-password"
const person = { base_configurations: { customer_interaction_available: true } }
const readings = {
  engine_reference: "es-bank:api",
  features: [
    {
      code: "accounts_read",
      configurations: { from_date: "5 years ago", limits_behaviour: "adapt", read_transactions: true },
    },
    { code: "cards_read", configurations: { filter_by_type: ["financial_card:credit"] } },
  ],
}
const words = [
  "queue-0+run-10+records-4",
  "queue-0+run-10+records-4+feature-DISABLED",
  "queue-0+run-10+records-4+input-4711+by-cards_read+expire-600",
  "queue-0+run-10+challenge-4711+cancel-30",
  "queue-0+run-10+challenge-4711+expire-600",
]

it.effect("what a start decided survives a restart, and no decrypted value is written", () =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "nightjar-plans-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true })),
    )
    const journal = join(folder, "state.ndjson")
    const service = () => inProcess({ seed: 7, journal })
    const lookAt = (ids: ReadonlyArray<readonly [string, string]>) =>
      Effect.flatMap(Caller, (caller) =>
        Effect.forEach(ids, ([execution, session]) =>
          Effect.all([caller.read(execution), caller.results(session)]),
        ),
      )
    yield* TestClock.setTime(morning)
    const [ids, before] = yield* Effect.gen(function* () {
      const caller = yield* Caller
      const started = yield* Effect.forEach(words, (said, index) =>
        caller.start("", {
          ...readings,
          ...person,
          customer_id: `c-${index}`,
          parameters: { username: sealed(said), password: sealed(canary) },
        }),
      )
      yield* TestClock.adjust(6_000)
      const last = textField(started[4], "execution_id")
      expect((yield* caller.resume(last, { kode: "4711" })).status).toBe(202)
      yield* TestClock.adjust(1_000)
      const known = started.map(
        (answer) => [textField(answer, "execution_id"), textField(answer, "session_id")] as const,
      )
      return [known, yield* lookAt(known)] as const
    }).pipe(Effect.provide(service()))
    expect(before.map(([state, results]) => [state.status, results.status])).toEqual([
      [202, 200],
      [202, 200],
      [423, 200],
      [423, 412],
      [423, 412],
    ])
    yield* TestClock.adjust(60_000)
    const [undisturbed, again] = [
      yield* lookAt(ids).pipe(Effect.provide(service())),
      yield* TestClock.adjust(6_000).pipe(Effect.andThen(lookAt(ids)), Effect.provide(service())),
    ]
    expect(undisturbed.map(([state]) => [state.status, textField(state, "status_reason")])).toEqual([
      [200, "COMPLETED"],
      [200, "PARTIAL"],
      [423, "undefined"],
      [200, "USER_CANCELLED"],
      [423, "undefined"],
    ])
    expect(again).toEqual(undisturbed)
    expect(undisturbed[0]?.[0].text).toContain("feature.dates_adapted")
    expect(undisturbed[4]?.[0].text).toContain("payload_errors")
    expect(undisturbed[2]?.[0].text).toContain('"producer":"cards_read"')
    expect(readFileSync(journal, "utf8")).not.toContain(canary)
  }),
)
