/**
 * Facts of whole nights in miniature or at full size, made from a seed, for the report's tests: queues,
 * retries, every kind of end, hostile texts. Each night is as plausible as the fold and the page need it to be.
 */
import type { Outcome, WhoActs } from "../../src/service/EndTable.ts"
import { rowOf } from "../../src/service/Ends.ts"
import type { Fact, Recorded } from "../../src/ledger/Fact.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import type { RunState } from "../../src/ledger/RunState.ts"
import type { PublishedFacts } from "../../src/report/Report.ts"
import { said } from "../service/Said.ts"
import { anId } from "../harness/Id.ts"
import { aFact } from "../harness/Facts.ts"
import { landed } from "./Samples.ts"

export const hostile = `<img src=x onerror="alert('1')">&\u202e</script>=1+1`

/** The same numbers for the same seed, from 0 to 1. */
export const numbersFrom = (seed: number) => {
  let state = seed * 2_654_435_761 + 1
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 3_266_489_917) | 0
    return ((state >>> 0) % 100_000) / 100_000
  }
}

interface NightOptions {
  readonly run_id: string
  readonly tasks: number
  readonly seed: number
  /** The share of tasks that do not succeed. */
  readonly badShare: number
  readonly beginAt: number
  readonly exit_code: number
}

const engines = ["es-tax-agency:website", "es-social-security:website", "es-bank:api", "sandbox-bank:website"]
const badReasons = [
  ..."BLOCKED_USER INVALID_CREDENTIALS TIMEOUT OUT_OF_SERVICE DEADLINE_REACHED FAILED".split(" "),
  hostile,
]

/** Facts in the order of their times, as a ledger would hold them. */
export const nightFacts = (options: NightOptions): ReadonlyArray<Recorded> => {
  const { tasks, badShare, beginAt, exit_code } = options
  const run_id = anId(options.run_id)
  const next = numbersFrom(options.seed)
  const timed: Array<{ at: number; fact: Fact }> = []
  const started: Fact = {
    _tag: "RunStarted",
    run_id,
    job: "nightly-spain",
    job_path: "/srv/night jobs/spain.yaml",
    run_date: "2026-11-21",
    tool_version: "0.10.0",
  }
  timed.push({ at: beginAt, fact: started })
  let endAt = beginAt
  for (let index = 0; index < tasks; index++) {
    const engine = engines[index % engines.length] ?? ""
    const customer = index === 3 ? hostile : `c-${String(index).padStart(5, "0")}`
    const task_id = anId(`${run_id}/${customer}/${engine}`)
    timed.push({
      at: beginAt,
      fact: aFact("TaskPlanned", {
        run_id,
        task_id,
        customer_id: customer,
        engine_reference: engine,
        features: ["accounts_read"],
      }),
    })
    const isBad = next() < badShare
    const attempts = next() < 0.1 ? 2 : 1
    let at = beginAt + Math.floor(next() * tasks * 3_000)
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const ids = { run_id, task_id, attempt }
      const execution_id = anId(`e-${index}-${attempt}`)
      const queue = Math.floor(next() * 120_000)
      const work = 30_000 + Math.floor(next() * next() * 1_200_000)
      const isLast = attempt === attempts
      const reason = isLast
        ? isBad
          ? (badReasons[index % badReasons.length] ?? "")
          : "COMPLETED"
        : "OUT_OF_SERVICE"
      const seen = (status_reason: string): Fact => ({
        _tag: "AttemptObserved",
        ...ids,
        execution_id,
        status_code: "ONGOING",
        status_reason,
      })
      timed.push(
        { at, fact: { _tag: "StartIntended", ...ids, external_execution_id: "nj", probe: false } },
        {
          at: at + 200,
          fact: { _tag: "StartAnswered", ...ids, answer: "accepted", http_status: 202, execution_id },
        },
        { at: at + 300, fact: seen("WAITING") },
        { at: at + queue, fact: seen("RUNNING") },
        {
          at: at + queue + work,
          fact: aFact("AttemptClosed", {
            ...ids,
            execution_id,
            status_reason: reason,
            products_count: {},
            landed,
          }),
        },
        { at: at + queue + work, fact: { _tag: "AttemptDrained", ...ids, execution_id } },
      )
      at += queue + work
      if (isLast) {
        const { outcome, who_acts } = rowOf(reason)
        const ends: { outcome: Outcome; who_acts: WhoActs } = { outcome, who_acts }
        const message = isBad && index % 2 === 0 ? { message: `the source says ${hostile}` } : {}
        timed.push({
          at,
          fact: { _tag: "TaskSettled", run_id, task_id, ...ends, reason: said(reason), ...message },
        })
      } else at += 60_000 + Math.floor(next() * 600_000)
    }
    endAt = Math.max(endAt, at)
  }
  timed.push({ at: endAt, fact: { _tag: "RunEnded", run_id, exit_code, leftovers: exit_code === 4 } })
  return timed
    .map((one, order) => ({ ...one, order }))
    .toSorted((a, b) => a.at - b.at || a.order - b.order)
    .map(({ at, fact }, index) => ({ seq: index + 1, at, fact }))
}

export const stateOf = (facts: ReadonlyArray<Recorded>): RunState => {
  const run = foldRun(facts)
  if (run === undefined) throw new Error("the facts hold no beginning")
  return run
}

/** Thirty runs of each engine, and the coverage of the newest. */
export const publishedSample = (): PublishedFacts => {
  const next = numbersFrom(3)
  return {
    changes: {
      since: "nightly-spain.2026-11-20",
      hasPseudonyms: false,
      tables: [
        {
          table: "customer_profiles",
          added: 1,
          changed: 11,
          gone: 0,
          rejected: 0,
          records: [
            {
              change: "changed",
              customer_id: hostile,
              engine_reference: "es-bank:api",
              columns: [hostile, "civil_status"],
            },
            { change: "added", customer_id: null, engine_reference: null, columns: [] },
          ],
        },
        { table: "loans", added: 0, changed: 0, gone: 1, rejected: 2, records: [] },
      ],
    },
    engines: Array.from({ length: 30 }, (_, night) =>
      engines.map((engine_reference) => {
        const p50_ms = 60_000 + Math.floor(next() * 120_000)
        return {
          run_id: `nightly-spain.night-${night}`,
          engine_reference,
          tasks: 100,
          not_succeeded: Math.floor(next() * 12),
          p50_ms,
          p95_ms: p50_ms * 3,
        }
      }),
    ).flat(),
    coverage: engines.flatMap((engine_reference) => [
      { engine_reference, feature: "accounts_read", outcome: "succeeded", customers: 90 },
      { engine_reference, feature: "accounts_read", outcome: "failed", customers: 10 },
      { engine_reference, feature: "", outcome: "unfinished", customers: 1 },
    ]),
  }
}
