/**
 * A client that keeps the rule about accounts in the plainest way: one task after the other, everything remembered
 * before it is sent. The judge must find nothing wrong with it, and must see each of the faults that can be put into
 * it: so the judge is known before the pipeline is judged.
 */
import { Effect } from "effect"
import { HttpClientRequest } from "effect/http"
import { SandboxClient } from "../../src/sandbox/server/SandboxServer.ts"
import type { AccountsPlan, Command, Stranger, TaskEnd, Use } from "./AccountNights.ts"
import { encrypt, normalised } from "./HostileService.ts"

export const faults = [
  "counts nothing",
  "forgets strikes over night",
  "any end sets strikes to zero",
  "an account for each customer",
  "an account for each channel",
  "an account for each spelling",
  "sends refused logins again",
  "does not wait for a lost login",
  "does not wait for an open execution",
  "never in doubt about an engine",
  "counts a maintenance as strikes",
  "risks the third strike anywhere",
  "never trusts an engine again",
  "probes without end",
] as const
export type PlantedFault = (typeof faults)[number]

const minute = 60_000
const nightMs = 600 * minute
const base = SandboxClient.base_url

interface Account {
  unproven: number
  lastNight: number
  unprovenTonight: number
  readonly refused: Set<string>
  isClosed: boolean
  busyUntil: number
  /** Answers 503 that its engine's page confirmed. */
  believed: number
}

interface Engine {
  isInDoubt: boolean
  waitMs: number
  nextAt: number
  inARow: number
  acceptedBy: ReadonlyArray<{ readonly account: Account; readonly at: number }>
}

interface Answer {
  readonly status: number
  readonly json: Readonly<Record<string, unknown>>
}

type Process = Parameters<Stranger["night"]>[0]
type Sent = "done" | "again" | "wait"

class Client {
  readonly closed = new Map<string, number>()
  readonly ends: Array<TaskEnd> = []
  private readonly plan: AccountsPlan
  private readonly fault: PlantedFault | undefined
  private readonly accounts = new Map<string, Account>()
  private engines = new Map<string, Engine>()
  private attempt = 0
  private nightNow = 0

  constructor(plan: AccountsPlan, fault: PlantedFault | undefined) {
    this.plan = plan
    this.fault = fault
  }

  readonly night = (process: Process): Effect.Effect<void> =>
    Effect.gen({ self: this }, function* () {
      const { command, now } = process
      if (command.night !== this.nightNow) this.newNight(command.night)
      if (this.fault !== "never trusts an engine again") this.engines = new Map()
      const untilAt = now() + nightMs
      let tasks = this.plan.uses.filter((use) => this.isWanted(use, command))
      while (tasks.length > 0 && now() < untilAt) {
        const ready = yield* this.next(process, tasks)
        if (ready === undefined) {
          yield* Effect.sleep(minute / 2)
          continue
        }
        const sent = yield* this.send(process, ready)
        if (sent === "done" || this.isHopeless(ready)) tasks = tasks.filter((task) => task !== ready)
      }
      for (const task of tasks) this.end(process, task, "unfinished", "ENGINE_UNAVAILABLE")
    })

  private newNight(night: number) {
    this.nightNow = night
    for (const account of this.accounts.values()) {
      account.believed = 0
      account.unprovenTonight = 0
      if (this.fault === "forgets strikes over night") account.unproven = 0
    }
  }

  private isWanted(use: Use, { jobs, night, isRerun }: Command): boolean {
    if (!jobs.includes(use.job) || (use.fromNight ?? 0) > night) return false
    const last = this.ends.findLast(
      (end) => end.customer === use.customer && end.engine === use.engine && end.job === use.job,
    )
    return last?.outcome !== "succeeded" || (last.night !== night && isRerun !== true)
  }

  private accountOf({ engine, username, customer, encrypted }: Use): Account {
    const source = engine.slice(0, engine.indexOf(":"))
    const login = this.fault === "an account for each spelling" ? username : normalised(username)
    const key =
      this.fault === "an account for each customer" || encrypted === "all"
        ? `${source} of ${customer}`
        : `${this.fault === "an account for each channel" ? engine : source} ${login}`
    const known = this.accounts.get(key) ?? {
      unproven: 0,
      unprovenTonight: 0,
      lastNight: -1,
      refused: new Set<string>(),
      isClosed: false,
      busyUntil: 0,
      believed: 0,
    }
    this.accounts.set(key, known)
    return known
  }

  private engineOf(reference: string): Engine {
    const known = this.engines.get(reference) ?? {
      isInDoubt: false,
      waitMs: minute / 2,
      nextAt: 0,
      inARow: 0,
      acceptedBy: [],
    }
    this.engines.set(reference, known)
    return known
  }

  private strikesOf(account: Account): number {
    return this.fault === "counts nothing" ? 0 : account.unproven + account.refused.size
  }

  /** Neither this night nor later, as far as is known. */
  private isHopeless(use: Use): boolean {
    const account = this.accountOf(use)
    if (this.fault === "sends refused logins again") return false
    return (
      account.isClosed ||
      account.refused.has(use.password(this.nightNow)) ||
      this.wrongs.get(account)?.has(use.password(this.nightNow)) === true ||
      account.refused.size >= 2 ||
      this.strikesOf(account) >= 3
    )
  }

  /** The task that may be sent now: without strikes first. Those that may never be are ended. */
  private readonly next = (process: Process, tasks: Array<Use>) =>
    Effect.gen({ self: this }, function* () {
      const now = process.now()
      for (const use of tasks.filter((one) => this.isHopeless(one))) {
        const reason = this.strikesOf(this.accountOf(use)) >= 3 ? "LOGIN_UNPROVEN" : "INCORRECT_CREDENTIALS"
        this.end(process, use, "failed", reason)
        tasks.splice(tasks.indexOf(use), 1)
      }
      const free = tasks
        .filter(
          (use) => this.accountOf(use).busyUntil <= now || this.fault === "does not wait for a lost login",
        )
        .toSorted((a, b) => this.strikesOf(this.accountOf(a)) - this.strikesOf(this.accountOf(b)))
      for (const use of free) {
        const engine = this.engineOf(use.engine)
        if (engine.isInDoubt) {
          if (this.fault === "never trusts an engine again" || engine.nextAt > now) continue
          engine.waitMs = Math.min(engine.waitMs * 2, 15 * minute)
          engine.nextAt = now + engine.waitMs
          if ((yield* this.pageOf(process, use.engine)) !== "available") continue
        }
        if (this.mayRisk(use, tasks, now)) return use
      }
      return undefined
    })

  /** The third strike: where another account has just passed, or on another date with nobody left to show it. */
  private mayRisk(use: Use, tasks: ReadonlyArray<Use>, now: number): boolean {
    const account = this.accountOf(use)
    const isNew = this.fault === "does not wait for a lost login" || this.fault === "counts nothing"
    if (account.unprovenTonight >= 2 && !isNew) return false
    if (this.strikesOf(account) < 2 || this.fault === "risks the third strike anywhere") return true
    const engine = this.engineOf(use.engine)
    const isShown = engine.acceptedBy.some(
      (other) => other.account !== account && other.at >= now - 10 * minute,
    )
    const hasOthers = tasks.some(
      (task) => task.engine === use.engine && this.strikesOf(this.accountOf(task)) < 2,
    )
    return (!engine.isInDoubt && isShown) || (!hasOthers && account.lastNight !== this.nightNow)
  }

  private call(process: Process, request: HttpClientRequest.HttpClientRequest): Effect.Effect<Answer> {
    return process.client.execute(request).pipe(
      Effect.flatMap((response) =>
        Effect.map(Effect.option(response.json), (json) => ({
          status: response.status,
          json: json._tag === "Some" ? (Object(json.value) as Answer["json"]) : {},
        })),
      ),
      Effect.timeout("30 seconds"),
      Effect.catch((error) =>
        Effect.succeed({ status: JSON.stringify(error).includes("ECONNREFUSED") ? -1 : 0, json: {} }),
      ),
    )
  }

  private readonly pageOf = (process: Process, reference: string) =>
    Effect.gen({ self: this }, function* () {
      const { status, json } = yield* this.call(
        process,
        HttpClientRequest.get(`${base}/config/engines/${reference}`),
      )
      const list = yield* this.call(process, HttpClientRequest.get(`${base}/config/engines/list`))
      if (list.status !== 200) return "unknown"
      if (status === 200) return json["is_online"] === true ? "available" : "away"
      return status === 503 && typeof json["detail"] === "string" ? "away" : "unknown"
    })

  private readonly send = (process: Process, use: Use) =>
    Effect.gen({ self: this }, function* () {
      const account = this.accountOf(use)
      const engine = this.engineOf(use.engine)
      this.attempt += 1
      const external = `x-${this.attempt}`
      let sent = yield* this.start(process, use, account, engine, external)
      while (this.fault === "probes without end" && sent === "wait" && account.unproven < 8) {
        yield* Effect.sleep(minute)
        sent = yield* this.start(process, use, account, engine, external)
      }
      return sent
    })

  private readonly start = (process: Process, use: Use, account: Account, engine: Engine, external: string) =>
    Effect.gen({ self: this }, function* () {
      const at = process.now()
      // Before it is sent: a process that dies has counted it.
      const before = {
        unproven: account.unproven,
        busyUntil: account.busyUntil,
        lastNight: account.lastNight,
      }
      account.unproven += 1
      account.unprovenTonight += 1
      account.lastNight = this.nightNow
      account.busyUntil = at + this.plan.job.maxWaitMs
      const takeBack = () => Object.assign(account, before)
      const { status, json } = yield* this.call(process, this.requestOf(use, external))
      const id = json["execution_id"]
      const hasId = typeof id === "string" && id.length <= 512
      if ((status === 200 || status === 201 || status === 202) && hasId) {
        this.accepted(engine, account, process.now())
        const followed = this.follow(process, use, account, id)
        if (this.fault !== "does not wait for an open execution") return yield* followed
        account.busyUntil = 0
        yield* Effect.forkChild(followed)
        return "done" satisfies Sent as Sent
      }
      if (status === 429 || status === -1 || status === 409) {
        takeBack()
        yield* Effect.sleep(minute)
        return "again" satisfies Sent as Sent
      }
      if (status === 422 && Array.isArray(json["detail"])) {
        takeBack()
        this.end(process, use, "failed", "REFUSED")
        return "done" satisfies Sent as Sent
      }
      if (status === 400 && json["status_reason"] === "INCORRECT_CREDENTIALS") {
        takeBack()
        this.refuse(process, use, account)
        return "done" satisfies Sent as Sent
      }
      return yield* this.unproven(process, use, account, engine, status === 503, takeBack)
    })

  private readonly unproven = (
    process: Process,
    use: Use,
    account: Account,
    engine: Engine,
    isAway: boolean,
    takeBack: () => void,
  ) =>
    Effect.gen({ self: this }, function* () {
      const isSaid = isAway && account.believed < 2 && (yield* this.pageOf(process, use.engine)) === "away"
      if (isSaid && this.fault !== "counts a maintenance as strikes") {
        takeBack()
        account.believed += 1
      }
      engine.inARow += 1
      const isDoubt = engine.isInDoubt || isAway || engine.acceptedBy.length === 0 || engine.inARow >= 3
      if (isDoubt && this.fault !== "never in doubt about an engine") {
        if (!engine.isInDoubt) Object.assign(engine, { isInDoubt: true, waitMs: minute / 2 })
        engine.nextAt = process.now() + engine.waitMs
      }
      if (isSaid) return "again" satisfies Sent as Sent
      this.end(process, use, "unfinished", "START_UNKNOWN")
      return (this.fault === "probes without end" ? "wait" : "done") satisfies Sent as Sent
    })

  private accepted(engine: Engine, account: Account, at: number) {
    if (this.fault !== "never trusts an engine again") engine.isInDoubt = false
    engine.inARow = 0
    engine.waitMs = minute / 2
    engine.acceptedBy = [...engine.acceptedBy.slice(-20), { account, at }]
  }

  private requestOf(use: Use, external: string) {
    const { fields } = this.plan.channels.find(({ reference }) => reference === use.engine) ?? { fields: [] }
    const salt = `${this.nightNow}`
    const values = fields.map((_, index) =>
      index === 0 ? use.username : index === fields.length - 1 ? use.password(this.nightNow) : "of it",
    )
    const parameters = Object.fromEntries(
      fields.map((field, index) => {
        const isSealed =
          use.encrypted === "all" || (use.encrypted === "password" && index === fields.length - 1)
        return [field, isSealed ? encrypt(values[index] ?? "", salt) : values[index]]
      }),
    )
    return HttpClientRequest.post(`${base}/executions/init/v1/parametrized`).pipe(
      HttpClientRequest.bodyJsonUnsafe({
        engine_reference: use.engine,
        customer_id: use.customer,
        external_execution_id: external,
        parameters,
      }),
    )
  }

  private readonly follow = (process: Process, use: Use, account: Account, id: string) =>
    Effect.gen({ self: this }, function* () {
      let isGood = false
      for (let missing = 0; missing < 3;) {
        yield* Effect.sleep(5_000)
        const { status, json } = yield* this.call(
          process,
          HttpClientRequest.get(`${base}/executions/handler/v1/${id}`),
        )
        if (json["authentication_status"] === "AUTH_OK") isGood = true
        if (status === 404) missing += 1
        if (status !== 200 || json["is_closed"] !== true) continue
        this.closed.set(id, process.now())
        this.over(process, use, account, isGood, json)
        return "done" satisfies Sent as Sent
      }
      if (isGood) this.good(account)
      this.end(process, use, "failed", isGood ? "GONE" : "EXECUTION_GONE")
      return "done" satisfies Sent as Sent
    })

  private good(account: Account) {
    account.unproven = 0
    account.unprovenTonight = 0
    account.refused.clear()
    account.busyUntil = 0
  }

  private over(process: Process, use: Use, account: Account, isGood: boolean, json: Answer["json"]) {
    account.busyUntil = 0
    const reason = String(json["status_reason"])
    if (isGood) {
      const wrong = [...account.refused]
      this.good(account)
      // They stay refused; only their strikes are gone. A refusal closes for as long as it is unchanged.
      if (this.fault !== "sends refused logins again") this.everRefused(account, wrong)
      return this.end(process, use, reason === "COMPLETED" ? "succeeded" : "failed", reason)
    }
    account.unproven -= 1
    account.unprovenTonight -= 1
    if (json["authentication_status"] === "not-performed") {
      if (this.fault === "any end sets strikes to zero") account.unproven = 0
      return this.end(process, use, "unfinished", reason)
    }
    this.refuse(process, use, account)
  }

  private readonly wrongs = new Map<Account, Set<string>>()
  private everRefused(account: Account, passwords: ReadonlyArray<string>) {
    this.wrongs.set(account, new Set([...(this.wrongs.get(account) ?? []), ...passwords]))
  }

  private refuse(process: Process, use: Use, account: Account) {
    if (this.fault !== "sends refused logins again") {
      account.refused.add(use.password(this.nightNow))
      if (use.encrypted !== undefined) account.isClosed = true
    }
    account.busyUntil = 0
    this.end(process, use, "failed", "INCORRECT_CREDENTIALS")
  }

  private end({ now }: Process, use: Use, outcome: string, reason: string) {
    const { job, customer, engine } = use
    this.ends.push({ night: this.nightNow, job, customer, engine, outcome, reason, at: now() })
  }
}

export const carefulClient = (plan: AccountsPlan, fault?: PlantedFault): Stranger => new Client(plan, fault)
