/** The observer's rule against deleting what nobody was given, told from what was retrieved and what answers carried. */
import { connect } from "node:net"
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { SandboxOptions } from "../../../src/sandbox/server/Sandbox.ts"
import type { Fault } from "../../../src/sandbox/faults/Faults.ts"
import { Caller, overHttp, textField, toldAt, truth, type Reach } from "../server/Caller.ts"

const profile = "customer_information:user_profile"
const both = { features: ["customer_information_read", "accounts_read"] }
const profileOnly = { features: ["customer_information_read"] }

interface Asked {
  readonly words: string
  readonly more?: Readonly<Record<string, unknown>> | undefined
  /** What is read before the deletion, in order; `wait` lets six seconds pass. */
  readonly reads: string
}

/** What else is said of a start and of the service. */
interface Under extends Partial<SandboxOptions> {
  readonly more?: Asked["more"]
  readonly reach?: Reach
}

/** Asks for this address and closes the connection at the first bytes of the answer. */
const breakOff = (method: string, url: string) =>
  Effect.callback<void>((resume) => {
    const { port, pathname } = new URL(url)
    const socket = connect(Number(port), "127.0.0.1")
    socket.write(`${method} ${pathname} HTTP/1.1\r\nHost: localhost\r\nX-APP-SECRET: sandbox-app-1\r\n\r\n`)
    socket.once("data", () => socket.destroy())
    socket.once("close", () => resume(Effect.void))
  })

/** One execution of `c-1`, read and deleted. */
const deleteAfter = ({ words, more = profileOnly, reads }: Asked) =>
  Effect.gen(function* () {
    const caller = yield* Caller
    const started = yield* caller.start(`queue-0+run-0+${words}`, more)
    const id = textField(started, "execution_id")
    yield* caller.read(id)
    const records = (family: string) =>
      Effect.exit(caller.call("GET", `${caller.base_url}/executions/results/${id}/${family}/v1/records`))
    for (const read of reads.split(" ")) {
      if (read === "wait") yield* TestClock.adjust("6 seconds")
      if (read === "head") yield* breakOff("HEAD", caller.resultsUrl(textField(started, "session_id")))
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

const kept = (retrieved: unknown) => ({ executions: [[retrieved, retrieved]], breaks: [] })
const lost = (retrieved: unknown, delivered: unknown, ...families: ReadonlyArray<string>) => ({
  executions: [[retrieved, delivered]],
  breaks: [["deleted_unread", families]],
})

const lostBy = (fault: object) => ({ faults: { faults: [{ on: "readFlowResults", ...fault } as Fault] } })

describe("deleted unread", () => {
  const [one, three, eight] = [{ [profile]: 1 }, { [profile]: 3 }, { [profile]: 8 }]
  const oddity = "sandbox_oddity:unheard_of"
  const odd = { [profile]: 2, [oddity]: 2 }
  const checking = { ...one, "account:checking": 1 }
  const noFlow: Under = { reading: { flow_api: "absent", profile: "absent" } }
  const kinds = { flow_api: "absent", result_kinds: "present", products_count: "absent" } as const
  const two: Under = { more: both }
  const several: Under = { more: both, reading: kinds }
  const sockets: Under = { reach: overHttp }
  const replaced = lostBy({ status: 503, applied: true })
  const none = lost(three, {}, profile)
  const list: Under = { reading: { flow_data: "list" } }
  const rows: ReadonlyArray<readonly [string, string, string, unknown, Under?]> = [
    ["is not an execution whose final results were answered", "records-3", "flow", kept(three)],
    ["is not one that two sources answered, one of them short", "records-3", "flow profile", kept(three)],
    ["is one that nobody read", "records-3", "", none],
    ["is not one without records", "records-0", "", kept({})],
    ["is one of eight, one answered", "noflow+records-8", "flow profile", lost(eight, one, profile)],
    ["is not one whose only profile was answered", "noflow+records-1", "profile", kept(one)],
    ["is one whose results were not final yet", "records-3+late-60", "flow", none],
    ["is one whose results never become final", "records-3+neverfinal", "flow wait flow", none],
    ["is not one whose results were read again, final", "records-3+late-5", "flow wait flow", kept(three)],
    ["is one that no endpoint would ever show", "records-3", "flow profile profiles", none, noFlow],
    ["is one whose odd records did not arrive", "odd+records-1", "profile", lost(odd, one, profile, oddity)],
    ["is not one whose odd records came in one list", "odd+records-1+attach-2", "flow", kept(odd), list],
    ["is one with a missing family", "records-2", "profile", lost(checking, one, "account:checking"), two],
    // Whatever products_count shows.
    ["is not one of several sources", "records-2", "profile accounts", kept(checking), several],
    ["is one whose only answer was cut", "records-3", "flow", none, lostBy({ cut: 0.5 })],
    ["is one whose only answer was reset", "records-3", "flow", none, lostBy({ reset: "after" })],
    ["is one whose only answer was no JSON", "records-3", "flow", none, lostBy({ malformed: true })],
    ["is one whose only answer was replaced", "records-3", "flow", none, replaced],
    ["[unread head] is one whose results were asked for with HEAD", "records-3", "head", none, sockets],
  ]
  for (const [title, words, reads, expected, { more, reach, ...options } = {}] of rows)
    toldAt(
      0,
      title,
      function* () {
        yield* deleteAfter({ words, more, reads })
        expect(yield* seen).toEqual(expected)
      },
      options,
      reach,
    )
  toldAt(
    0,
    "[unread broken] is one whose caller closed the connection within the answer, and none that was read whole then",
    function* (caller) {
      const started = yield* caller.start("queue-0+run-0+records-12000", profileOnly)
      const session = textField(started, "session_id")
      const whole = { [profile]: 12_000 }
      yield* breakOff("GET", caller.resultsUrl(session))
      // The service has noticed by the time of another answer.
      yield* caller.read(textField(started, "execution_id"))
      expect((yield* seen).executions).toEqual([[whole, {}]])
      yield* TestClock.adjust("24 seconds")
      yield* caller.results(session)
      yield* caller.remove(textField(started, "execution_id"))
      expect(yield* seen).toEqual(kept(whole))
    },
    {},
    overHttp,
  )

  toldAt(0, "is on the admin page, with what nobody received", function* () {
    yield* deleteAfter({ words: "records-3", reads: "" })
    const caller = yield* Caller
    const { text } = yield* caller.call("GET", `${caller.origin}/admin`)
    expect(text).toContain("deleted unread")
    expect(text).toContain(`never answered in full: ${profile}`)
  })
})
