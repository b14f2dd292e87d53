/**
 * A short sample of the simulation, and for each promise that its observer watches a planted defect that it must see.
 * The nights are small: most defects show in small ones. The long campaign is `npm run simulate -- --seeds N`.
 */
import { Effect, Redacted } from "effect"
import { HttpClient } from "effect/http"
import { describe, expect, it } from "vitest"
import { families } from "../records/families.ts"
import type { Service } from "../../src/client/Service.ts"
import type { ExecutionId } from "../../src/service/Ids.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { foldRun } from "../../src/ledger/FoldRun.ts"
import type { Turn } from "../../src/task/SideBySide.ts"
import { violationsOf } from "./Invariants.ts"
import { refusalsAsTemporary } from "./NightLayers.ts"
import { planNight } from "./SeveralJobs.ts"
import { runSimulatedNight, type NightOutcome, type Plant } from "./SimulatedNight.ts"

const night = (seed: number, plant?: Plant): NightOutcome => {
  const plan = planNight(seed)
  const jobs = plan.jobs.map((job) => ({ ...job, assignments: job.assignments.slice(0, 8) }))
  return runSimulatedNight({ ...plan, jobs }, families, plant)
}

/** The promises broken in the first of a few nights that breaks one; in night `from` it shows today. */
const promisesBroken = (from: number, plant: Plant, step = 1): ReadonlyArray<number> => {
  for (let seed = from; seed < from + 24 * step; seed += step) {
    const broken = violationsOf(night(seed, plant)).map(({ promise }) => promise)
    if (broken.length > 0) return [...new Set(broken)]
  }
  return []
}

type Calls = Service["Service"]
/** The client of the service, with these calls in place of its own. */
const inService = (change: (service: Calls) => Partial<Calls>): Plant => ({
  service: (service) => ({ ...service, ...change(service) }),
})
type Read = Effect.Success<ReturnType<Calls["readExecution"]>>
/** Each state that is read becomes this, whoever it is of. */
const inReads = (
  change: (answer: Read, execution_id: ExecutionId, service: Calls) => Effect.Effect<Read>,
): Plant =>
  inService((service) => ({
    readExecution: (id) => Effect.flatMap(service.readExecution(id), (answer) => change(answer, id, service)),
  }))
const jsonBody = (json: unknown) => ({ bytes: new TextEncoder().encode(JSON.stringify(json)), json })

/** A 409 echoes the request's external id, and `claimed` holds which execution it was about. */
const echoing =
  (service: Calls, claimed = new Map<string, string>()): Calls["startExecution"] =>
  (call, leaving) =>
    Effect.map(service.startExecution(call, leaving), (answer) => {
      if (answer._tag !== "AlreadyExecuting") return answer
      const { external_execution_id } = call
      if (answer.view.execution_id !== undefined) claimed.set(answer.view.execution_id, external_execution_id)
      return { ...answer, view: { ...answer.view, external_execution_id } }
    })

describe("a simulated run", () => {
  it("keeps the promises under faults and crashes", () => {
    // Several jobs, crashes and webhooks; even ones, compared with the same in a row; tokens over three nights.
    for (const seed of [43, 23, 42])
      expect({ seed, broken: violationsOf(night(seed)) }).toEqual({ seed, broken: [] })
  })

  it("touches no foreign run, even if every 409 echoes the request's external id", () => {
    const echo = inService((service) => ({ startExecution: echoing(service) }))
    let foreignRuns = 0
    for (let seed = 6; seed <= 45 && foreignRuns === 0; seed++) {
      const { truth } = night(seed, echo)
      foreignRuns += truth.executions.filter(({ foreign }) => foreign).length
      expect(truth.ruleBreaks.filter(({ rule }) => rule === "foreign_run_touched")).toEqual([])
    }
    expect(foreignRuns).toBeGreaterThan(0)
  })

  it("is the same run for the same seed", () => {
    expect(night(30).eventsHash).toBe(night(30).eventsHash)
  })
})

const unproven = (fact: Fact): Fact => {
  if (fact._tag === "AttemptKept") {
    const { run_id, task_id, attempt, execution_id, families } = fact
    const proof = { basis: "counted", families } as const
    return { _tag: "AttemptDrained", run_id, task_id, attempt, execution_id, proof }
  }
  return fact._tag === "RunPublished"
    ? { ...fact, receipts: fact.receipts.map((receipt) => ({ ...receipt, whole: true })) }
    : fact
}

/** Jobs side by side that do not wait for this. */
const withoutWait = (reason: Turn["waits"][number]["why"]): Plant => ({
  together: {
    turns: (all) => all.map(({ job, waits }) => ({ job, waits: waits.filter(({ why }) => why !== reason) })),
  },
})

describe("the observer detects a planted defect:", () => {
  /** Tried from a night on; with `step` 5, in nights of several jobs. */
  const detects = (title: string, promise: number, [from, step]: readonly [number, 5?], plant: Plant) =>
    it(title, () => expect(promisesBroken(from, plant, step)).toContain(promise))

  detects(
    "a start that is sent again with a new external id when its answer is lost (promises 1, 3)",
    3,
    [9],
    inService((service) => ({
      startExecution: (call, leaving) =>
        Effect.catchTag(service.startExecution(call, leaving), "AnswerLost", () => {
          const again = { ...call, external_execution_id: `${call.external_execution_id}-again` }
          return service.startExecution(again, leaving)
        }),
    })),
  )

  detects("a start that is sent twice although it was answered (promise 1)", 1, [24], {
    ledger: (ledger) => ({
      ...ledger,
      state: (run_id) =>
        Effect.map(ledger.facts(run_id), (all) =>
          foldRun(all.filter(({ fact }) => fact._tag !== "StartAnswered")),
        ),
    }),
  })

  detects(
    "a foreign run that is taken for ours (promise 2)",
    2,
    [6],
    inService((service) => {
      const claimed = new Map<string, string>()
      return {
        startExecution: echoing(service, claimed),
        // A 409 that claims to be about our own run is not believed: its state has to say so too.
        readExecution: (execution_id) =>
          Effect.map(service.readExecution(execution_id), (answer) => {
            const external_execution_id = claimed.get(execution_id)
            if (external_execution_id === undefined || !("view" in answer)) return answer
            return { ...answer, view: { ...answer.view, external_execution_id } }
          }),
      }
    }),
  )

  detects("a rejected login that is taken for a temporary error (promise 4)", 4, [37], refusalsAsTemporary)

  detects(
    "an execution that is deleted as soon as it is closed (promise 5)",
    5,
    [30],
    inReads((answer, id, { deleteExecution }) =>
      Effect.as(answer._tag === "Closed" ? Effect.ignore(deleteExecution(id)) : Effect.void, answer),
    ),
  )

  detects(
    "results that are taken for final while they are partial (promise 5)",
    5,
    [24],
    inService((service) => ({
      readResults: (source, ids) =>
        Effect.map(service.readResults(source, ids), (answer) =>
          answer._tag === "Results" && source.name === "flow_results"
            ? { ...answer, body: jsonBody({ ...Object(answer.body.json), is_closed: true }) }
            : answer,
        ),
    })),
  )

  detects("an execution that is deleted without the proof that all of it is here (promise 5)", 5, [6], {
    ledger: (ledger) => ({ ...ledger, append: (facts) => ledger.append(facts.map(unproven)) }),
  })

  detects("a record that gets no row (promise 14)", 14, [30], { place: (rows) => Math.max(0, rows - 1) })

  detects(
    "a session that is read without a pause (promise 10)",
    10,
    [15],
    inService((service) => ({
      readResults: (source, ids) =>
        Effect.andThen(service.readResults(source, ids), service.readResults(source, ids)),
    })),
  )

  detects("a Retry-After that is not waited for (promise 10)", 10, [19], {
    client: (client) =>
      HttpClient.make((request) =>
        Effect.flatMap(client.execute(request), (response) =>
          response.headers["retry-after"] === undefined ? Effect.succeed(response) : client.execute(request),
        ),
      ),
  })

  detects(
    "an execution of ours that is aborted without an intent (promise 2)",
    2,
    [30],
    inReads((answer, id, { abortExecution }) =>
      Effect.as(answer._tag === "Working" ? Effect.ignore(abortExecution(id)) : Effect.void, answer),
    ),
  )

  detects(
    "a ticket that is sent in until it is answered (promise 1)",
    1,
    [42],
    inService((service) => ({
      exchangeTicket: (execution_id, ticket) =>
        Effect.retry(service.exchangeTicket(execution_id, ticket), { times: 5 }).pipe(
          Effect.tap(() => service.exchangeTicket(execution_id, ticket)),
          Effect.tap(() => service.exchangeTicket(execution_id, ticket)),
        ),
    })),
  )

  detects(
    "a ticket that a landed body still holds (promise 12)",
    12,
    [42],
    inService((service) => ({
      startExecution: (call, leaving) =>
        Effect.map(service.startExecution(call, leaving), (answer) =>
          answer._tag === "Accepted" && answer.view.ticket !== undefined
            ? { ...answer, body: jsonBody({ note: `keep ${Redacted.value(answer.view.ticket)}` }) }
            : answer,
        ),
    })),
  )

  // The ledger keeps one login of an account at a time all the same: what is seen is that tasks are missing.
  detects("two jobs side by side that share a customer (promise 3)", 6, [138, 5], withoutWait("customer"))

  detects("jobs that have all slots for themselves (promise 3)", 3, [48, 5], {
    together: { hasOwnSlots: true },
  })

  detects("a job that does not wait for the one that it follows (promise 4)", 4, [8, 5], withoutWait("after"))
})
