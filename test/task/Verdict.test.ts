/** What the readings of a closed execution come to, whole: the proof that is recorded, the reason, the message. */
import { describe, expect, it } from "vitest"
import { flowResultsSource, profileSource, readProductsCount } from "../../src/service/FlowResults.ts"
import type { ResultsSource } from "../../src/service/FlowResults.ts"
import { findingOf } from "../../src/task/DrainProof.ts"
import { own } from "../../src/service/Ends.ts"
import type { SourceReading } from "../../src/task/PullResults.ts"
import { judgeReadings, unwanted, verdictOf, verdictOfSession, type Reading } from "../../src/task/Verdict.ts"

const pulled = (source: ResultsSource, reading: SourceReading) => ({ source, reading })
const final = (source: ResultsSource, data: ReadonlyArray<string>) => {
  const records = data.map((sub_family) => ({ product: "p", sub_family }))
  const body = source.records[0] === "body" ? records[0] : { data: records, is_closed: true }
  return pulled(source, { _tag: "Final", finding: findingOf(source, body) })
}
const refused = (source: ResultsSource, http_status: number | undefined) =>
  pulled(source, { _tag: "Refused", http_status })
const nothing = (source: ResultsSource) => pulled(source, { _tag: "Nothing", http_status: 404 })
const unfinished = (source: ResultsSource) => pulled(source, { _tag: "Unfinished" })
const counts = (of: Readonly<Record<string, number>>) => readProductsCount(of)
const trusted: ResultsSource = { ...flowResultsSource, counts: "none" }

describe("the readings of an execution", () => {
  it("prove by the count if it equals what is here, else by an accepted final answer", () => {
    expect(judgeReadings(counts({ "a:b@p": 2 }), [final(flowResultsSource, ["a:b", "a:b", "c:d"])])).toEqual({
      _tag: "Drained",
      basis: "counted",
      families: [
        { family: "a:b", counted: 2, landed: 2 },
        { family: "c:d", landed: 1 },
      ],
    })
    expect(judgeReadings(counts({ "a:b@p": 2, "c:d@p": 1 }), [final(trusted, ["a:b", "c:d"])])).toEqual({
      _tag: "Drained",
      basis: "final",
      families: [
        { family: "a:b", counted: 2, landed: 1 },
        { family: "c:d", counted: 1, landed: 1 },
      ],
    })
    expect(judgeReadings(readProductsCount(null), [final(trusted, ["a:b"])])).toEqual({
      _tag: "Drained",
      basis: "final",
      families: [{ family: "a:b", landed: 1 }],
    })
  })

  it("keep the execution if only a document is not here, and for its records if they are short, too", () => {
    const lacking = (data: ReadonlyArray<string>) => {
      const { source, reading } = final(flowResultsSource, data)
      return pulled(source, { ...reading, lacksDocuments: true } as SourceReading)
    }
    const reasonOf = (data: ReadonlyArray<string>) => {
      const reading = judgeReadings(counts({ "a:b@p": 2 }), [lacking(data)])
      return reading._tag === "Kept" ? [reading.reason, reading.message] : reading._tag
    }
    expect([reasonOf(["a:b", "a:b"]), reasonOf(["a:b"])]).toEqual([
      ["DOCUMENTS_SHORT", "a document that the results name is not here"],
      ["RECORDS_SHORT", "a:b 1 of 2"],
    ])
  })

  it("prove nothing while one of them is partial, whatever the others are", () => {
    expect(
      judgeReadings(counts({ "a:b@p": 1 }), [final(flowResultsSource, ["a:b"]), unfinished(profileSource)]),
    ).toEqual({ _tag: "Partial" })
  })

  it("prove nothing without a count if an endpoint refused and none answered [promise 5 refusals]", () => {
    for (const none of [{}, { "a:b@p": 0 }])
      expect(judgeReadings(counts(none), [nothing(flowResultsSource), refused(profileSource, 405)])).toEqual({
        _tag: "Kept",
        reason: "RECORDS_UNREACHABLE",
        families: Object.keys(none).map(() => ({ family: "a:b", counted: 0, landed: 0 })),
        message: "flow_results: 404, profile: 405",
      })
    for (const calm of [
      [final(flowResultsSource, []), refused(profileSource, 405)],
      [nothing(flowResultsSource)],
      [],
    ])
      expect(judgeReadings(counts({}), calm)).toEqual({ _tag: "Drained", basis: "counted", families: [] })
  })

  it("with an unknown count are kept with the reason and the answers", () => {
    expect(
      judgeReadings(readProductsCount(null), [
        final(flowResultsSource, ["a:b"]),
        refused(profileSource, undefined),
      ]),
    ).toEqual({
      _tag: "Kept",
      reason: "RECORDS_UNREACHABLE",
      families: [{ family: "a:b", landed: 1 }],
      message: "products_count is null; profile: cannot be read with this id",
    })
    expect(judgeReadings(readProductsCount(null), [refused(flowResultsSource, 422)])).toEqual({
      _tag: "Kept",
      reason: "RECORDS_UNREACHABLE",
      families: [],
      message: "products_count is null; flow_results: 422",
    })
  })

  it("are short if an endpoint that may return the family answered, and name what is [end RECORDS_SHORT]", () => {
    const short = judgeReadings(counts({ "a:b@p": 2, "c:d@p": 1, "e:f@p": 0 }), [
      final(flowResultsSource, ["a:b", "c:d"]),
    ])
    expect(short).toEqual({
      _tag: "Kept",
      reason: "RECORDS_SHORT",
      families: [
        { family: "a:b", counted: 2, landed: 1 },
        { family: "c:d", counted: 1, landed: 1 },
        { family: "e:f", counted: 0, landed: 0 },
      ],
      message: "a:b 1 of 2",
    })
  })

  it("are unreachable only if nothing came of what no endpoint may return [end RECORDS_UNREACHABLE]", () => {
    const narrow: ResultsSource = { ...flowResultsSource, families: ["a:*"] }
    const reasonOf = (
      of: Readonly<Record<string, number>>,
      ...readings: Parameters<typeof judgeReadings>[1]
    ) => {
      const reading = judgeReadings(counts(of), readings)
      return "reason" in reading ? reading.reason : reading._tag
    }
    const one = final(narrow, ["a:b"])
    expect(reasonOf({ "a:b@p": 2 }, one)).toBe("RECORDS_SHORT")
    expect(reasonOf({ "a:b@p": 1, "x:y@p": 1 }, one)).toBe("RECORDS_UNREACHABLE")
    // Nothing of it was counted, so that nothing of it can be out of reach.
    expect(reasonOf({ "a:b@p": 2, "x:y@p": 0 }, one)).toBe("RECORDS_SHORT")
    // Nothing of it came from an endpoint that may return it, and nothing from one that did not answer.
    expect(reasonOf({ "a:b@p": 2 }, final(narrow, []))).toBe("RECORDS_SHORT")
    const profile = final(profileSource, ["customer_information:user_profile"])
    for (const unanswered of [nothing(flowResultsSource), refused(flowResultsSource, 422)])
      expect(reasonOf({ "a:b@p": 2 }, unanswered, profile)).toBe("RECORDS_UNREACHABLE")
    // Some of it came, although the endpoint's row does not name it.
    expect(reasonOf({ "a:b@p": 1, "x:y@p": 2 }, final(narrow, ["a:b", "x:y"]))).toBe("RECORDS_SHORT")
  })

  it("name three families, each cut to a readable length, and say how many more there are", () => {
    const messageOf = (...families: ReadonlyArray<string>) => {
      const reading = judgeReadings(counts(Object.fromEntries(families.map((name) => [`${name}@p`, 1]))), [])
      return "message" in reading ? reading.message : ""
    }
    const long = "a".repeat(200)
    expect([messageOf(long), messageOf("a", "b", "c"), messageOf("a", "b", "c", "d", "e")]).toEqual([
      `${long.slice(0, 80)} 0 of 1`,
      "a 0 of 1, b 0 of 1, c 0 of 1",
      "a 0 of 1, b 0 of 1, c 0 of 1 and 2 more families",
    ])
  })
})

describe("the verdict", () => {
  const kept: Reading = { _tag: "Kept", reason: "RECORDS_SHORT", families: [], message: "a:b 1 of 2" }

  it("for a job that wants no results depends on that alone, and contains no record", () => {
    expect(unwanted).toEqual({ _tag: "Drained", basis: "unwanted", families: [] })
  })

  it("is that of the end, except for results that are partial or kept", () => {
    expect(verdictOf(own("COMPLETED"), { _tag: "Partial" })).toEqual({
      outcome: "unfinished",
      reason: "RESULTS_PARTIAL",
      who_acts: "service",
    })
    const withoutDocuments: Reading = { ...kept, reason: "DOCUMENTS_SHORT" }
    for (const reason of ["COMPLETED", "PARTIAL", "FAILED"] as const)
      expect(verdictOf(own(reason), withoutDocuments)).toEqual(own(reason))
    const short = { outcome: "partial", reason: "RECORDS_SHORT", who_acts: "engineer", message: "a:b 1 of 2" }
    expect(verdictOf(own("COMPLETED"), kept)).toEqual(short)
    // An end that is partial itself (section 3.1).
    expect(verdictOf(own("PARTIAL"), kept)).toEqual(short)
    expect(verdictOf(own("FAILED"), kept)).toEqual(own("FAILED"))
    for (const reading of [unwanted, { _tag: "Gone" } as const])
      expect(verdictOf(own("COMPLETED"), reading)).toEqual({
        outcome: "succeeded",
        reason: "COMPLETED",
        who_acts: "nobody",
      })
  })

  it("for a session that a job lists is what its last endpoint said, and what was read before [end SESSION_GONE]", () => {
    const after = (wasRead: boolean, ...readings: ReadonlyArray<SourceReading>) =>
      verdictOfSession(
        readings.map((reading) => pulled(flowResultsSource, reading)),
        wasRead,
      )
    const told = (...readings: ReadonlyArray<SourceReading>) => after(false, ...readings)
    const done: SourceReading = { _tag: "Final", finding: findingOf(flowResultsSource, {}) }
    const none: SourceReading = { _tag: "Nothing", http_status: 404 }
    expect([
      told(),
      told(none),
      told({ _tag: "Refused", http_status: 422 }),
      told(none, { _tag: "Unfinished" }),
      told(none, done),
      after(true, none),
      after(true, { _tag: "Unfinished" }),
    ]).toEqual([
      own("SESSION_UNKNOWN"),
      own("SESSION_UNKNOWN"),
      own("SESSION_UNKNOWN"),
      own("RESULTS_PARTIAL"),
      { outcome: "succeeded", reason: "COMPLETED", who_acts: "nobody" },
      { outcome: "partial", reason: "SESSION_GONE", who_acts: "engineer" },
      own("RESULTS_PARTIAL"),
    ])
  })

  it("of a listed session is the secret's if its reads were refused 401 or 403 [end SECRET_REFUSED session]", () => {
    const told = (wasRead: boolean, http_status: number) =>
      verdictOfSession([refused(flowResultsSource, http_status)], wasRead)
    const ofSecret = (message: string) => ({ ...own("SECRET_REFUSED"), message })
    expect([told(false, 401), told(false, 403), told(true, 403), told(true, 404)]).toEqual([
      ofSecret("flow_results: 401"),
      ofSecret("flow_results: 403"),
      ofSecret("flow_results: 403"),
      own("SESSION_GONE"),
    ])
  })
})
