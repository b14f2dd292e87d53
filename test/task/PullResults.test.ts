/** Results in virtual time: partial, final, absent, locked, with documents, without an execution. */
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { SecretRefused, UnexpectedAnswer, type StateView } from "../../src/client/Service.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { exitCodeOf } from "../../src/report/Finish.ts"
import { idOf, makePlace, minute, night, rules, run_id, second, succeeded } from "./ScriptedNight.ts"
import type { NightEnd } from "./ScriptedNight.ts"
import { bodyOf, completed, counted, lost, nothing, results, state, acceptedAs } from "./ScriptedService.ts"
import { throttled, unexpected } from "./ScriptedService.ts"
import type { Script } from "./ScriptedService.ts"
import { anId } from "../harness/Id.ts"
import { effect } from "../harness/Steps.ts"

const over: Script = { state: () => completed }
const accountRecord = { product: "accounts", sub_family: "bank:account" }
const absent = nothing(404)
const counting = (products_count: Readonly<Record<string, number>>): Script => ({
  state: () =>
    state("COMPLETED", "COMPLETED", {
      authentication_status: "AUTH_OK",
      products_count: counted(products_count),
    }),
})
const oneProfile = { "customer_information:user_profile@customer_information": 1 }
const reads = (facts: ReadonlyArray<Fact>) =>
  facts.flatMap((fact) =>
    fact._tag === "ResultsRead"
      ? [[fact.kind, fact.http_status, fact.is_closed, fact.landed !== undefined]]
      : [],
  )
const isDrained = (end: NightEnd) => end.state.tasks.get(idOf("c-1"))?.attempts[0]?.drained
const gaps = (end: NightEnd) => {
  const times = end.timesOf("results")
  return times.slice(1).map((at, index) => at - (times[index] ?? 0))
}
const partial = "unfinished RESULTS_PARTIAL service"

describe("results", () => {
  effect("are read until they are final; every new body is landed, an unchanged one is not", function* () {
    const end = yield* night({
      script: {
        ...over,
        results: (_, times) =>
          times <= 4 ? results(false, [times <= 2 ? 1 : 2]) : results(true, [accountRecord]),
      },
    })
    expect([end.verdict("c-1"), isDrained(end), reads(end.facts)]).toEqual([
      succeeded,
      true,
      [
        ["results", 200, false, true],
        ["results", 200, false, true],
        ["results", 200, true, true],
      ],
    ])
    for (const gap of gaps(end)) expect(gap).toBeGreaterThanOrEqual(5 * second)
    const landed = end.landed.filter(({ meta }) => meta.kind === "results")
    expect(landed.length).toBe(3)
  })

  const renamed = (session_id: string, more: Partial<StateView> = {}): Script => ({
    state: () =>
      state("COMPLETED", "COMPLETED", {
        authentication_status: "AUTH_OK",
        products_count: counted({ "bank:account@accounts": 1 }),
        session_id: anId(session_id),
        ...more,
      }),
  })

  effect(
    "[decision session ids] are asked for by each id that the service gave their session, until one brings them",
    function* () {
      const id = "s-c-1-1"
      const script: Script = {
        ...renamed("S-C-1-1"),
        results: (asked) => (asked === id ? results(true, [accountRecord]) : absent),
      }
      const end = yield* night({ script })
      const asked = end.facts.flatMap((fact) =>
        fact._tag === "ResultsRead" ? [[fact.session_id, fact.asked_as, fact.http_status]] : [],
      )
      const landed = end.landed.filter(({ meta }) => meta.kind === "results")
      expect([end.verdict("c-1"), isDrained(end), asked, landed.map(({ meta }) => meta.session_id)]).toEqual([
        succeeded,
        true,
        [
          ["S-C-1-1", undefined, 404],
          ["S-C-1-1", id, 200],
        ],
        ["S-C-1-1"],
      ])
      for (const gap of gaps(end)) expect(gap).toBeGreaterThanOrEqual(5 * second)
    },
  )

  effect("are read again by the id that brought them; what is as it was is no fact", function* () {
    const place = makePlace()
    const script: Script = {
      ...renamed("S-C-1-1", { products_count: counted({ "bank:account@accounts": 2 }) }),
      results: (asked) => (asked === "s-c-1-1" ? results(true, [accountRecord]) : absent),
    }
    const before = yield* night({ place, script })
    const asked = before.countOf("results")
    const after = yield* night({ place, script, mode: "collect" })
    expect([before.verdict("c-1"), after.facts.length - before.facts.length]).toEqual([
      "partial RECORDS_SHORT engineer",
      0,
    ])
    expect([isDrained(after), after.countOf("results") - asked]).toEqual([false, 1])
  })

  effect.each<readonly [string, ReturnType<Extract<Script["results"], object>>]>([
    ["has nothing", absent],
    ["answers with an error", throttled(504)],
  ])(
    "[decision session ids nothing] prove nothing where the newest id refuses and one of before %s",
    function* ([, older]) {
      const end = yield* night({
        script: {
          ...renamed("S-C-1-1", { products_count: counted({}) }),
          results: (asked) => (asked === "S-C-1-1" ? unexpected : older),
        },
      })
      expect([end.verdict("c-1"), isDrained(end), end.countOf("delete")]).toEqual([
        "partial RECORDS_UNREACHABLE engineer",
        false,
        0,
      ])
    },
  )

  effect("are not asked for by an id that no address can carry, and nothing is deleted", function* () {
    const start = () => acceptedAs({ execution_id: anId("e-c-1-1"), session_id: anId("..") })
    const end = yield* night({ script: { ...over, start } })
    expect([end.verdict("c-1"), isDrained(end), reads(end.facts)]).toEqual([
      "partial RECORDS_UNREACHABLE engineer",
      false,
      [],
    ])
    expect([end.countOf("results"), end.countOf("delete")]).toEqual([0, 0])
  })

  effect("are landed with everything that says whose they are; the same ones are landed once", function* () {
    const answers = [results(false, [1]), throttled(504), results(false, [1]), absent, results(false, [1])]
    const script = { ...over, results: (_: string, times: number) => answers[times - 1] ?? results(true) }
    const end = yield* night({ script, sessions: ["s-9"] })
    const landed = end.landed.flatMap(({ meta, bytes }) =>
      meta.kind === "results" ? [[{ ...meta, received_at: 0 }, new TextDecoder().decode(bytes)]] : [],
    )
    const common = { kind: "results", source: "flow_results", run_id, http_status: 200, received_at: 0 }
    const ours = {
      ...common,
      task_id: idOf("c-1"),
      attempt: 1,
      execution_id: "e-c-1-1",
      session_id: "s-c-1-1",
      customer_id: "c-1",
      engine_reference: "bank",
    }
    const alone = { ...common, task_id: `${run_id}/session/s-9`, session_id: "s-9" }
    const bodies = [results(false, [1]), results(true)].map(({ body }) => JSON.stringify(body.json))
    const of = (id: string) => landed.filter(([meta]) => Object(meta).session_id === id)
    expect([of("s-c-1-1"), of("s-9"), landed.length]).toEqual([
      bodies.map((body) => [ours, body]),
      bodies.map((body) => [alone, body]),
      4,
    ])
    expect(end.verdict("c-1")).toBe(succeeded)
  })

  effect("that are not final are read once more if there is just time for it", function* () {
    const reads = (wait_final: number) =>
      Effect.map(
        night({
          script: { ...over, results: () => results(false) },
          rules: { flow_results: { ...rules.flow_results, wait_final: Duration.millis(wait_final) } },
        }),
        (end) => end.countOf("results"),
      )
    // A read is answered and landed after 205 ms, and the next one begins 5 s later.
    expect([yield* reads(5_204), yield* reads(5_205)]).toEqual([1, 2])
  })

  effect("that are not final after wait_final leave the task unfinished, to be read later", function* () {
    const first = yield* night({ script: { ...over, results: () => results(false) } })
    expect([first.verdict("c-1"), isDrained(first)]).toEqual([partial, false])
    const read = first.timesOf("results")
    expect(Math.max(...read) - Math.min(...read)).toBeLessThanOrEqual(10 * minute)
    for (const mode of ["night", "collect"] as const) {
      const next = yield* night({ facts: first.facts.slice(2), mode, script: over })
      expect([next.starts, next.verdict("c-1"), isDrained(next)]).toEqual([0, succeeded, true])
      // The process before it may have asked a moment ago.
      expect(next.calls[0]?.[0]).toBeGreaterThanOrEqual(5 * second)
    }
  })
})

describe("missing results", () => {
  effect("that were there a moment ago prove nothing [promise 5 absence]", function* () {
    const record = [accountRecord]
    const script = (gone: number): Script => ({
      ...counting({}),
      results: (_, times) => (times === 1 ? results(false, record) : times <= gone ? absent : results(true)),
    })
    const ends = [yield* night({ script: script(2) }), yield* night({ script: script(6) })]
    expect(ends.map((end) => [end.verdict("c-1"), isDrained(end), end.countOf("results")])).toEqual([
      [succeeded, true, 3],
      [succeeded, true, 7],
    ])
    const gone = yield* night({ script: script(Infinity) })
    expect([gone.verdict("c-1"), isDrained(gone)]).toEqual([partial, false])
  })

  effect("are replaced by the profile if it contains every family that was counted", function* () {
    const profile = { product: "customer_information", sub_family: "customer_information:user_profile" }
    const expected = { "customer_information:user_profile@customer_information": 1, "none:at_all@none": 0 }
    const script = {
      results: () => absent,
      profile: () => ({ _tag: "Results", body: bodyOf(profile) }) as const,
    }
    const whole = yield* night({ script: { ...counting(expected), ...script } })
    expect([whole.verdict("c-1"), isDrained(whole), reads(whole.facts).at(-1)]).toEqual([
      succeeded,
      true,
      ["profile", 200, true, true],
    ])
    const more = yield* night({
      script: { ...counting({ ...expected, "bank:account@accounts": 2 }), ...script },
    })
    expect([more.verdict("c-1"), isDrained(more)]).toEqual(["partial RECORDS_UNREACHABLE engineer", false])
  })

  effect("are not asked of an endpoint that is off, nor of another while one is not final", function* () {
    const sources = rules.sources.map((one) => ({ ...one, enabled: one.name !== "profile" }))
    const off = yield* night({
      script: { ...counting(oneProfile), results: () => absent },
      rules: { sources },
    })
    const waiting = yield* night({ script: { ...counting(oneProfile), results: () => results(false) } })
    expect([off, waiting].map((end) => [end.verdict("c-1"), end.countOf("profile")])).toEqual([
      ["partial RECORDS_UNREACHABLE engineer", 0],
      [partial, 0],
    ])
  })

  effect("are partial, not lost, while the profile does not answer", function* () {
    const end = yield* night({
      script: { ...counting(oneProfile), results: () => absent, profile: () => lost },
    })
    expect([end.verdict("c-1"), isDrained(end)]).toEqual([partial, false])
  })
})

describe("an answer without results", () => {
  effect("is believed at once if permanent, else after three reads [decision 10 sources]", function* () {
    const refusedWith = (http_status: number) => new UnexpectedAnswer({ http_status, message: "no" })
    const secret = new SecretRefused({ http_status: 403, message: "no" })
    const asked = (answer: ReturnType<NonNullable<Script["results"]>>) =>
      Effect.map(night({ script: { ...over, results: () => answer } }), (end) => end.countOf("results"))
    const answers = [refusedWith(422), nothing(412), nothing(404), refusedWith(400), refusedWith(405), secret]
    expect(yield* Effect.forEach(answers, asked)).toEqual([1, 1, 3, 3, 3, 3])
  })

  effect("that the reference does not list is no refusal unless it is a 4xx", function* () {
    const statuses = [302, 399, 500, 507]
    const ends = yield* Effect.forEach(statuses, (http_status) => {
      const strange = new UnexpectedAnswer({ http_status, message: "no" })
      return night({ script: { ...over, results: (_, times) => (times < 5 ? strange : results(true)) } })
    })
    expect(ends.map((end) => [end.verdict("c-1"), end.countOf("results")])).toEqual(
      statuses.map(() => [succeeded, 5]),
    )
  })

  effect("counts only if the reads before it had none either, with nothing else in between", function* () {
    const answers = [absent, absent, lost, absent, absent]
    const end = yield* night({
      script: { ...over, results: (_, times) => answers[times - 1] ?? results(true) },
    })
    expect([end.verdict("c-1"), end.countOf("results")]).toEqual([succeeded, 6])
  })

  effect("is reported with its status if the time for results is up", function* () {
    const end = yield* night({ script: { ...over, results: () => throttled(504) } })
    expect([end.verdict("c-1"), reads(end.facts)]).toEqual([partial, [["results", 504, false, false]]])
  })
})

describe("documents", () => {
  const named = {
    accounts: [accountRecord],
    a: [{ attachment_id: "doc-1" }, { attachment_id: "../etc" }, { attachments: ["doc-2", "doc-3"] }],
  }
  const statuses = (end: NightEnd) =>
    Object.fromEntries(
      end.state.tasks
        .get(idOf("c-1"))
        ?.attachments.map(({ attachment_id, status }) => [attachment_id, status]) ?? [],
    )

  effect("are downloaded once the results are final; missing or refused ones are reported", function* () {
    const end = yield* night({
      script: {
        ...over,
        results: (_, times) => results(times > 1, named),
        attachment: (id, times) =>
          id === "doc-2" || (id === "doc-1" && times < 3)
            ? "missing"
            : id === "doc-3" && times < 3
              ? lost
              : "document",
      },
    })
    expect([statuses(end), end.verdict("c-1"), isDrained(end)]).toEqual([
      { "../etc": "refused", "doc-1": "downloaded", "doc-2": "missing", "doc-3": "downloaded" },
      succeeded,
      true,
    ])
    const asked = ["../etc", "doc-1", "doc-2"].map((id) => end.countOf("attachment", id))
    expect(asked).toEqual([0, 3, 3])
    const [first = 0, , third = 0] = end.timesOf("attachment", "doc-1")
    expect(third - first).toBeGreaterThanOrEqual(10_000)
  })

  const forbidden = new SecretRefused({ http_status: 403, message: "no" })
  const moved = new UnexpectedAnswer({ http_status: 302, message: "no" })
  const answers = [
    { name: "no answer", answer: lost, status: "failed", exit: 4 },
    { name: "503", answer: throttled(503), status: "failed", exit: 4 },
    { name: "403", answer: forbidden, status: "not_delivered", exit: 0 },
    { name: "302", answer: moved, status: "not_delivered", exit: 0 },
    { name: "no bytes", answer: "empty", status: "not_delivered", exit: 0 },
    { name: "a page", answer: "page", status: "not_delivered", exit: 0 },
  ] as const
  const newsOf = (end: NightEnd) =>
    end.facts.filter(({ _tag }) => /^(?:AttachmentRead|AttemptKept|TaskSettled)$/.test(_tag)).length
  const foundOf = (end: NightEnd) => {
    const kept = end.state.tasks.get(idOf("c-1"))?.attempts[0]?.kept?.reason
    const exit = exitCodeOf(end.state, "keep")
    const status = statuses(end)["doc-3"]
    return { verdict: end.verdict("c-1"), status, kept, exit, drained: isDrained(end) }
  }
  it.effect.each(answers)(
    "that do not come keep the execution; the records decide the end, and only they are requested again: $name [promise 5 empty] [promise 5 page] [promise 5 documents] [exit 0 documents] [end DOCUMENTS_SHORT]",
    ({ answer, status, exit }) =>
      Effect.gen(function* () {
        const script = (attachment: NonNullable<Script["attachment"]>): Script => ({
          ...over,
          results: () => results(true, named),
          attachment,
        })
        const first = yield* night({ script: script((id) => (id === "doc-3" ? answer : "document")) })
        const short = { verdict: succeeded, status, kept: "DOCUMENTS_SHORT", exit, drained: false }
        expect(foundOf(first)).toEqual(short)
        const facts = first.facts.slice(2)
        const still = yield* night({ facts, script: script(() => answer) })
        expect([foundOf(still), newsOf(still)]).toEqual([short, newsOf(first)])
        const next = yield* night({ facts, script: script(() => "document") })
        const whole = { verdict: succeeded, status: "downloaded", kept: undefined, exit: 0, drained: true }
        expect([foundOf(next), next.countOf("attachment")]).toEqual([whole, 1])
      }),
  )

  effect("that a record calls pages are downloaded as pages", function* () {
    const pages = [
      { attachment_id: "doc-1", media_type: "text/html" },
      { attachment_id: "doc-2", name: "a.JSON" },
    ]
    const end = yield* night({
      script: { ...over, results: () => results(true, { a: pages }), attachment: () => "page" },
    })
    expect(statuses(end)).toEqual({ "doc-1": "downloaded", "doc-2": "downloaded" })
  })

  effect("are not downloaded if the job does not want them", function* () {
    const flow_results = { ...rules.flow_results, attachments: false }
    const end = yield* night({
      script: { ...over, results: () => results(true, named) },
      rules: { flow_results },
    })
    expect([end.countOf("attachment"), statuses(end), isDrained(end)]).toEqual([0, {}, true])
  })
})
