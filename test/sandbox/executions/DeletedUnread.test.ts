/**
 * The observer's rule against deleting what nobody was given: told from what each execution had retrieved and
 * from what its answers carried, whatever the service showed of it.
 */
import { readFileSync } from "node:fs"
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { SandboxOptions } from "../../../src/sandbox/server/Sandbox.ts"
import { Caller, inProcess, textField, toldAt, truth } from "../server/Caller.ts"
import { folder } from "../../harness/Folder.ts"
import { effect } from "../../harness/Steps.ts"

const profile = "customer_information:user_profile"
const both = { features: ["customer_information_read", "accounts_read"] }
const profileOnly = { features: ["customer_information_read"] }

interface Asked {
  readonly words: string
  readonly more?: Readonly<Record<string, unknown>>
  /** What is read before the deletion, in order; `wait` lets six seconds pass. */
  readonly reads: ReadonlyArray<"flow" | "profile" | "accounts" | "profiles" | "wait">
}

/** One execution of `c-1`, read and deleted. */
const deleteAfter = ({ words, more = profileOnly, reads }: Asked) =>
  Effect.gen(function* () {
    const caller = yield* Caller
    const started = yield* caller.start(`queue-0+run-0+${words}`, more)
    const id = textField(started, "execution_id")
    yield* caller.read(id)
    const records = (family: string) =>
      Effect.exit(caller.call("GET", `${caller.base_url}/executions/results/${id}/${family}/v1/records`))
    for (const read of reads) {
      if (read === "wait") yield* TestClock.adjust("6 seconds")
      if (read === "flow") yield* Effect.exit(caller.results(textField(started, "session_id")))
      if (read === "profile") yield* Effect.exit(caller.call("GET", caller.profileUrl(id)))
      if (read === "profiles") yield* records("customer_information")
      if (read === "accounts") yield* records("account")
    }
    expect((yield* caller.remove(id)).status).toBe(204)
  })

const seen = Effect.gen(function* () {
  const { executions, ruleBreaks } = yield* truth
  return {
    executions: executions.map(({ retrieved, delivered }) => [retrieved, delivered]),
    breaks: ruleBreaks.map(({ rule, families }) => [rule, families]),
  }
})

const told = (title: string, asked: Asked, expected: unknown, options: Partial<SandboxOptions> = {}) => {
  toldAt(
    0,
    title,
    function* () {
      yield* deleteAfter(asked)
      expect(yield* seen).toEqual(expected)
    },
    { ...options },
  )
}

const kept = (retrieved: unknown, delivered: unknown = retrieved) => ({
  executions: [[retrieved, delivered]],
  breaks: [],
})
const lost = (retrieved: unknown, delivered: unknown, ...families: ReadonlyArray<string>) => ({
  executions: [[retrieved, delivered]],
  breaks: [["deleted_unread", families]],
})

describe("deleted unread", () => {
  const three = { [profile]: 3 }
  told(
    "is not an execution whose final results were answered",
    { words: "records-3", reads: ["flow"] },
    kept(three),
  )
  told(
    "is not one that two sources answered, one of them short: they are not added up",
    { words: "records-3", reads: ["flow", "profile"] },
    kept(three),
  )
  told("is one that nobody read", { words: "records-3", reads: [] }, lost(three, {}, profile))
  told("is not one without records", { words: "records-0", reads: [] }, kept({}))
  told(
    "is one of eight profiles if only one was answered",
    { words: "noflow+records-8", reads: ["flow", "profile"] },
    lost({ [profile]: 8 }, { [profile]: 1 }, profile),
  )
  told(
    "is not one whose only profile was answered",
    { words: "noflow+records-1", reads: ["profile"] },
    kept({ [profile]: 1 }),
  )
  told(
    "is one whose results were not final yet",
    { words: "records-3+late-60", reads: ["flow"] },
    lost(three, {}, profile),
  )
  told(
    "is one whose results never become final",
    { words: "records-3+neverfinal", reads: ["flow", "wait", "flow"] },
    lost(three, {}, profile),
  )
  told(
    "is not one whose results were read again once they were final",
    { words: "records-3+late-5", reads: ["flow", "wait", "flow"] },
    kept(three),
  )
  told(
    "is one with a missing family, whatever the others are",
    { words: "records-2", more: both, reads: ["profile"] },
    lost({ [profile]: 1, "account:checking": 1 }, { [profile]: 1 }, "account:checking"),
  )
  told(
    "is not one whose families came from several sources, whatever products_count shows",
    { words: "records-2", more: both, reads: ["profile", "accounts"] },
    kept({ [profile]: 1, "account:checking": 1 }),
    { reading: { flow_api: "absent", result_kinds: "present", products_count: "absent" } },
  )
  told(
    "is one that no endpoint would ever show",
    { words: "records-3", reads: ["flow", "profile", "profiles"] },
    lost(three, {}, profile),
    { reading: { flow_api: "absent", profile: "absent" } },
  )
  told(
    "is one whose answers were odd records that did not arrive",
    { words: "odd+records-1", reads: ["profile"] },
    lost(
      { [profile]: 2, "sandbox_oddity:unheard_of": 2 },
      { [profile]: 1 },
      profile,
      "sandbox_oddity:unheard_of",
    ),
  )
  told(
    "is not one whose odd records were answered, in one list",
    { words: "odd+records-1+attach-2", reads: ["flow"] },
    kept({ [profile]: 2, "sandbox_oddity:unheard_of": 2 }),
    { reading: { flow_data: "list" } },
  )
  for (const fault of [
    { cut: 0.5 },
    { reset: "after" },
    { malformed: true },
    { status: 503, applied: true },
  ] as const)
    told(
      `is one whose only answer was lost on its way (${JSON.stringify(fault)})`,
      { words: "records-3", reads: ["flow"] },
      lost(three, {}, profile),
      { faults: { faults: [{ on: "readFlowResults", ...fault }] } },
    )

  toldAt(0, "is on the admin page, with what nobody received", function* () {
    yield* deleteAfter({ words: "records-3", reads: [] })
    const caller = yield* Caller
    const { text } = yield* caller.call("GET", `${caller.origin}/admin`)
    expect(text).toContain("deleted unread")
    expect(text).toContain(`never answered in full: ${profile}`)
  })

  effect("is reported after a restart as before it", function* () {
    const journal = `${yield* folder}/journal.ndjson`
    const first = inProcess({ seed: 7, journal })
    yield* deleteAfter({ words: "records-3", reads: ["flow", "wait", "flow"] }).pipe(Effect.provide(first))
    yield* deleteAfter({ words: "noflow+records-3", reads: ["profile"] }).pipe(
      Effect.provide(inProcess({ seed: 7, journal })),
    )
    expect(yield* Effect.provide(seen, inProcess({ seed: 7, journal }))).toEqual({
      executions: [
        [three, three],
        [three, { [profile]: 1 }],
      ],
      breaks: [["deleted_unread", [profile]]],
    })
    const events = readFileSync(journal, "utf8").split("\n")
    expect(events.filter((line) => line.includes('"RecordsDelivered"'))).toHaveLength(2)
  })
})
