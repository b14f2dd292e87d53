/**
 * What the facts of a run say as spans and metrics: the night, its runs, their tasks and attempts, and
 * under each attempt the requests for it. It looks on: it decides nothing, and no fact waits for it.
 */
import type { LogLevel } from "effect"
import type { CallIds, ObserveCalls } from "../client/CallFailures.ts"
import type { Fact } from "../ledger/Fact.ts"
import type { Meter, OpenSpan, SpanValues, Spans } from "./Spans.ts"
import type { Outcome } from "../service/EndTable.ts"
import { isReason } from "../service/Ends.ts"
import { statusReasonsByCode } from "../service/Vocabulary.ts"

// The words of a fact that may leave the machine. Each is from a closed list, a number, or a name that the
// job gives to itself or an engine: a reason that no table lists is a word of the service, and that may be
// anything.

const unlisted = "UNLISTED"

const statusReasons: ReadonlySet<string> = new Set(Object.values(statusReasonsByCode).flat())

const listedReason = (reason: string): string =>
  isReason(reason) || statusReasons.has(reason) ? reason : unlisted

/** Of a task's waits, how many its span tells. */
const waitsMax = 20

interface SeenAttempt {
  readonly number: number
  readonly span: OpenSpan | undefined
  readonly begunAt: bigint
}

interface SeenTask {
  readonly engine: string
  readonly customer_id: string | undefined
  span: OpenSpan | undefined
  begunAt: bigint | undefined
  attempt: SeenAttempt | undefined
  waits: number
}

interface SeenRun {
  readonly span: OpenSpan | undefined
  exit_code: number | undefined
  readonly tasks: Map<string, SeenTask>
}

type FactOf<Tag extends Fact["_tag"]> = Extract<Fact, { readonly _tag: Tag }>
type Named = { readonly run_id: string; readonly task_id: string }

/** A start with one of these answers has no execution that is followed. */
const openAnswers: ReadonlySet<string> = new Set(["accepted", "adopted", "lost"])

const isFine = (outcome: Outcome): boolean => outcome === "succeeded" || outcome === "skipped"

const seconds = (from: bigint, to: bigint): number => Math.max(0, Number(to - from) / 1e9)

/** The status if that is the error, else what went wrong, as a word of our own. */
const errorOf = (failure: string | undefined, status: number | undefined): string | undefined =>
  failure !== undefined && status !== undefined && status >= 400 ? String(status) : failure

interface StoryOptions {
  readonly meter: Meter
  readonly spans: Spans | undefined
  readonly job: string
  readonly namesCustomers: boolean
}

export class RunStory {
  readonly #to: StoryOptions
  /** What this process does for the job: earlier runs that are collected, the plan, the run. */
  #night: OpenSpan | undefined
  readonly #runs = new Map<string, SeenRun>()
  /** Whose call it is: attempts by every id that a request may carry. */
  readonly #owners = new Map<string | undefined, OpenSpan>()

  constructor(to: StoryOptions) {
    this.#to = to
  }

  /** Whether the tasks of this run are known; if not, `planned` tells them. */
  knows(run_id: string): boolean {
    return this.#runs.has(run_id)
  }

  taskOf({ run_id, task_id }: Named): SeenTask | undefined {
    return this.#runs.get(run_id)?.tasks.get(task_id)
  }

  spanOf(run_id: string, task_id?: string): OpenSpan | undefined {
    const run = this.#runs.get(run_id)
    return (task_id === undefined ? undefined : run?.tasks.get(task_id)?.span) ?? run?.span
  }

  begin(run_id: string, at: bigint, values: Readonly<Record<string, string>> = {}): void {
    if (this.#runs.has(run_id)) return
    const all = { "nightjar.job": this.#to.job, "nightjar.run.id": run_id, ...values }
    const span = this.#open("nightjar.run", this.#nightAt(at), at, all)
    this.#runs.set(run_id, { span, exit_code: undefined, tasks: new Map() })
  }

  #nightAt(at: bigint): OpenSpan | undefined {
    this.#night ??= this.#open("nightjar.night", undefined, at, { "nightjar.job": this.#to.job })
    return this.#night
  }

  #open(name: string, parent: OpenSpan | undefined, at: bigint, values: SpanValues): OpenSpan | undefined {
    return this.#to.spans?.begin({ name, kind: "internal", parent: parent?.ids, at, values })
  }

  planned({ run_id, task_id, engine_reference, customer_id }: FactOf<"TaskPlanned">): void {
    const engine = engine_reference ?? "none"
    const fresh = { span: undefined, begunAt: undefined, attempt: undefined, waits: 0 }
    this.#runs.get(run_id)?.tasks.set(task_id, { engine, customer_id, ...fresh })
  }

  /** Once the ledger has the fact; `at` in nanoseconds on the run's clock. */
  tell(fact: Fact, at: bigint): void {
    switch (fact._tag) {
      case "TaskPlanned":
        return this.planned(fact)
      case "StartIntended":
        return this.#startSent(fact, at)
      case "StartAnswered":
        return this.#startAnswered(fact, at)
      case "AttemptObserved":
        return void this.#attemptOf(fact, at)
      case "AttemptClosed":
        return this.#closed(fact, at)
      case "AttemptDisowned":
        return this.#endAttempt(this.taskOf(fact), at, "NOT_OURS")
      case "TaskWaits":
        return this.#waits(fact, at)
      case "TaskSettled":
        return this.#settled(fact, at)
      case "TroubleBegan":
        return this.#to.meter.add("nightjar.troubles", 1, { "nightjar.trouble": fact.trouble })
      case "ResultsRead":
        return this.#to.meter.add("nightjar.landed.size", fact.landed?.bytes ?? 0, {
          "nightjar.landed.kind": fact.kind,
        })
      case "AttachmentRead":
        return this.#to.meter.add("nightjar.documents", 1, { "nightjar.document.status": fact.status })
      case "DeleteAnswered":
        return this.#to.meter.add("nightjar.deletions", 1, { "nightjar.deletion.outcome": fact.outcome })
      case "RunEnded":
        return this.#ended(fact)
      case "OutcomePublished":
        return this.#close(fact.run_id, at)
      default:
        return
    }
  }

  /** What is still open when the process ends is ended as it is. */
  closeAll(at: bigint): void {
    for (const run_id of this.#runs.keys()) this.#close(run_id, at)
    this.#night?.end(at)
  }

  /**
   * Requests to the service as spans and as a metric, by the conventions for HTTP clients: each under the
   * attempt that it is for, its address as a template. `url.full` is left out, because it has ids in it.
   */
  readonly observe: ObserveCalls = ({ method, template, host, port }, ids, at) => {
    const { meter, spans } = this.#to
    const values = {
      "http.request.method": method,
      "url.template": template,
      "server.address": host,
      "server.port": port,
    }
    const parent = spans === undefined ? undefined : this.#ownerOf(ids, at)
    let status: number | undefined
    return {
      answered: (http_status) => {
        status = http_status
      },
      ended: (failure, endedAt) => {
        const error = errorOf(failure, status)
        meter.add("http.client.request.duration", seconds(at, endedAt), {
          ...values,
          "server.port": String(port),
          "http.response.status_code": status === undefined ? undefined : String(status),
          "error.type": error,
        })
        // Nothing is below a request: its span is made when all of it is known.
        const seen = { ...values, "http.response.status_code": status }
        spans
          ?.begin({ name: `${method} ${template}`, kind: "client", parent, at, values: seen })
          .end(endedAt, error)
      },
    }
  }

  /** The attempt that a call is for; one for none, such as the list of engines, belongs to the night. */
  #ownerOf({ execution_id, session_id, external_execution_id }: CallIds, at: bigint) {
    const of = this.#owners
    const owner = of.get(external_execution_id) ?? of.get(execution_id) ?? of.get(session_id)
    return (owner ?? this.#nightAt(at))?.ids
  }

  #namesOf(values: Readonly<Record<string, string | undefined>>) {
    return this.#to.namesCustomers ? values : {}
  }

  #taskSpan(task: SeenTask, { run_id, task_id }: Named, at: bigint): OpenSpan | undefined {
    const { engine, customer_id } = task
    task.span ??= this.#open("nightjar.task", this.#runs.get(run_id)?.span, at, {
      "nightjar.engine": engine,
      ...this.#namesOf({ "nightjar.task.id": task_id, "nightjar.customer.id": customer_id }),
    })
    return task.span
  }

  /** The attempt that a fact is about; begun by it if an earlier process sent the start. */
  #attemptOf(
    fact: Named & Readonly<{ attempt: number; execution_id?: string; session_id?: string }>,
    at: bigint,
  ) {
    const task = this.taskOf(fact)
    if (task === undefined) return undefined
    if (task.attempt?.number !== fact.attempt) {
      this.#endAttempt(task, at, undefined)
      const values = { "nightjar.engine": task.engine, "nightjar.attempt.number": fact.attempt }
      const span = this.#open("nightjar.attempt", this.#taskSpan(task, fact, at), at, values)
      task.begunAt ??= at
      task.attempt = { number: fact.attempt, span, begunAt: at }
      this.#to.meter.add("nightjar.attempts.active", 1, { "nightjar.engine": task.engine })
    }
    const { span } = task.attempt
    const { execution_id, session_id } = fact
    if (span === undefined) return task
    if (execution_id !== undefined) this.#owners.set(execution_id, span)
    if (session_id !== undefined) this.#owners.set(session_id, span)
    span.set(this.#namesOf({ "nightjar.execution.id": execution_id, "nightjar.session.id": session_id }))
    return task
  }

  #startSent(fact: FactOf<"StartIntended">, at: bigint): void {
    const span = this.#attemptOf(fact, at)?.attempt?.span
    if (span !== undefined) this.#owners.set(fact.external_execution_id, span)
  }

  #startAnswered(fact: FactOf<"StartAnswered">, at: bigint): void {
    const task = this.#attemptOf(fact, at)
    const engine = task?.engine ?? "none"
    this.#to.meter.add("nightjar.starts", 1, { "nightjar.engine": engine, "nightjar.answer": fact.answer })
    if (!openAnswers.has(fact.answer)) this.#endAttempt(task, at, fact.answer)
  }

  #closed(fact: FactOf<"AttemptClosed">, at: bigint): void {
    const task = this.#attemptOf(fact, at)
    if (task?.attempt === undefined) return
    const reason = listedReason(fact.status_reason)
    task.attempt.span?.set({ "nightjar.reason": reason })
    this.#to.meter.add("nightjar.attempt.duration", seconds(task.attempt.begunAt, at), {
      "nightjar.engine": task.engine,
      "nightjar.reason": reason,
    })
    this.#endAttempt(task, at, reason === "COMPLETED" || reason === "PARTIAL" ? undefined : reason)
  }

  #endAttempt(task: SeenTask | undefined, at: bigint, error: string | undefined): void {
    if (task?.attempt === undefined) return
    task.attempt.span?.end(at, error)
    task.attempt = undefined
    this.#to.meter.add("nightjar.attempts.active", -1, { "nightjar.engine": task.engine })
  }

  #waits(fact: FactOf<"TaskWaits">, at: bigint): void {
    const task = this.taskOf(fact)
    const reason = listedReason(fact.reason)
    const engine = task?.engine ?? "none"
    this.#to.meter.add("nightjar.task.waits", 1, { "nightjar.engine": engine, "nightjar.reason": reason })
    if (task === undefined || (task.waits += 1) > waitsMax) return
    this.#taskSpan(task, fact, at)?.note("nightjar.task.waits", at, { "nightjar.reason": reason })
  }

  #settled(fact: FactOf<"TaskSettled">, at: bigint): void {
    const task = this.taskOf(fact)
    if (task === undefined) return
    const { outcome, who_acts } = fact
    const reason = listedReason(fact.reason)
    const values = { "nightjar.outcome": outcome, "nightjar.reason": reason, "nightjar.who_acts": who_acts }
    const { engine } = task
    this.#to.meter.add("nightjar.tasks", 1, { "nightjar.engine": engine, ...values })
    if (task.begunAt !== undefined)
      this.#to.meter.add("nightjar.task.duration", seconds(task.begunAt, at), {
        "nightjar.engine": engine,
        "nightjar.outcome": outcome,
      })
    const error = isFine(outcome) ? undefined : reason
    this.#endAttempt(task, at, error)
    const span = this.#taskSpan(task, fact, at)
    span?.set(values)
    span?.end(at, error)
    task.span = undefined
    task.begunAt = undefined
  }

  #ended({ run_id, exit_code }: FactOf<"RunEnded">): void {
    this.#to.meter.add("nightjar.runs", 1, { "nightjar.run.exit_code": String(exit_code) })
    const run = this.#runs.get(run_id)
    if (run === undefined) return
    run.exit_code = exit_code
    run.span?.set({ "nightjar.run.exit_code": exit_code })
  }

  #close(run_id: string, at: bigint): void {
    const run = this.#runs.get(run_id)
    if (run === undefined) return
    for (const task of run.tasks.values()) {
      this.#endAttempt(task, at, undefined)
      task.span?.end(at)
    }
    const { exit_code } = run
    run.span?.end(at, exit_code === undefined ? "CUT_OFF" : exit_code === 0 ? undefined : `EXIT_${exit_code}`)
  }
}

// Which facts of a run are log records elsewhere, how grave they are, and their words: those that a person
// on call reads. The run's own `log.ndjson` has all of them, with the names of customers.

/** `event` is the record's `event.name`. */
const record = (
  level: Extract<LogLevel.LogLevel, "Info" | "Warn" | "Error">,
  event: string,
  body: string,
  values: Readonly<Record<string, string | number>> = {},
) => ({ level, event: `nightjar.${event}`, body, values })
type LogRecord = ReturnType<typeof record>

const troubles = {
  silent: "the service gives no usable answer",
  throttled: "the service asks for fewer calls",
  engine: "an engine is unavailable",
} as const

const ofTrouble = (fact: FactOf<"TroubleBegan" | "TroubleEnded">): LogRecord => {
  const { trouble, engine_reference } = fact
  const engine = engine_reference === undefined ? {} : { "nightjar.engine": engine_reference }
  const values = { "nightjar.trouble": trouble, ...engine }
  return fact._tag === "TroubleBegan"
    ? record("Warn", "trouble.began", `Trouble began: ${troubles[trouble]}.`, values)
    : record("Info", "trouble.ended", `Trouble ended: ${troubles[trouble]}.`, values)
}

/** The words are ours alone: nothing in them comes from the service or from a customer. */
const records: { readonly [Tag in Fact["_tag"]]?: (fact: FactOf<Tag>) => LogRecord } = {
  RunStarted: ({ tool_version }) =>
    record("Info", "run.started", "The run started.", { "nightjar.version": tool_version }),
  RunResumed: () => record("Info", "run.resumed", "The run was resumed."),
  RunSteered: ({ order }) => record("Info", "run.steered", `The operator's command: ${order}.`),
  RunPublished: ({ version }) =>
    record("Info", "run.published", `Version ${version} of the tables was published.`),
  InterimPublished: ({ version }) => {
    const body = `Version ${version} of the tables was published while the run continues.`
    return record("Info", "run.published_meanwhile", body)
  },
  InterimRefused: () =>
    record("Warn", "run.not_published_meanwhile", "Nothing was published while the run continues."),
  RunHeld: () =>
    record("Warn", "run.held", "The run is held back: its tables did not pass the gates of the job."),
  RunAccepted: () => record("Info", "run.accepted", "A person accepted the tables of the run."),
  RunEnded: ({ exit_code }) =>
    record(exit_code === 0 ? "Info" : "Warn", "run.ended", `The run ended with exit code ${exit_code}.`, {
      "nightjar.run.exit_code": exit_code,
    }),
  TroubleBegan: ofTrouble,
  TroubleEnded: ofTrouble,
  TaskSettled: ({ outcome, reason: said, who_acts }) => {
    const reason = listedReason(said)
    const values = {
      "nightjar.outcome": outcome,
      "nightjar.reason": reason,
      "nightjar.who_acts": who_acts,
    }
    const level = isFine(outcome) ? "Info" : "Warn"
    return record(level, "task.ended", `A task ended: ${outcome}, ${reason}.`, values)
  },
  CredentialRejected: ({ engine_reference, reason }) =>
    record("Warn", "login.rejected", "A source rejected a login: it is not sent again.", {
      "nightjar.engine": engine_reference,
      "nightjar.reason": listedReason(reason),
    }),
  AttemptKept: ({ reason }) =>
    record("Warn", "execution.kept", `An execution is kept at the service: ${reason}.`),
  AnswerRefused: () => record("Error", "answer.unusable", "An answer of the service could not be used."),
  OrphanSuspected: () =>
    record("Warn", "start.repeated", "A start whose answer was lost may have run twice."),
}

/** Undefined for facts that are no log record elsewhere. */
export const recordOf = (fact: Fact): LogRecord | undefined =>
  (records[fact._tag] as ((fact: Fact) => LogRecord) | undefined)?.(fact)
