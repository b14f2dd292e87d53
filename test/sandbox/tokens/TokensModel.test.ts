/**
 * Random lives of tickets and tokens against a small model: starts, exchanges, token starts, revocations,
 * aborts, deletions and time, by three applications. Whatever the order, the answers are the model's, stored
 * credentials are there exactly as long as they may be, and no token ever runs twice at once.
 */
import * as fc from "fast-check"
import { expect, it } from "vitest"
import {
  abortExecution,
  deleteExecution,
  startExecution,
} from "../../../src/sandbox/executions/Executions.ts"
import {
  exchangeTicket,
  revokeToken,
  startTokenized,
  tokenStatusAt,
} from "../../../src/sandbox/tokens/Tokens.ts"
import { applyEvent, emptyState, momentAt } from "../../../src/sandbox/state/SandboxState.ts"
import { DirectCaller } from "../server/DirectCaller.ts"

const engine_reference = "sandbox-bank:website"
const day = 24 * 3_600_000
const wordsOf = {
  good: "queue-1+run-10",
  refused: "queue-1+run-10+end-BLOCKED_USER",
  turning: "queue-1+run-10+turn-2-CHANGE_PASSWORD",
  unreadable: "queue-1+run-10+t10n-exception",
}
type Words = keyof typeof wordsOf

/** The newest is 0: what just happened is what most is done to. */
const index = fc.constantFrom(0, 0, 0, 0, 1, 2, 3)
const application = fc.constantFrom("a", "a", "a", "a", "a", "a", "b", "incapable")
const customer = fc.constantFrom("c-1", "c-2", "c-3")
const weighed = <Value>(
  weight: number,
  fields: { readonly [Key in keyof Value]: fc.Arbitrary<Value[Key]> },
) => ({
  weight,
  arbitrary: fc.record(fields),
})
const words = fc.constantFrom<Words>("good", "turning", "turning", "turning", "refused", "unreadable")
const right = fc.constantFrom(true, true, true, false)
const named = fc.boolean()
const command = fc.oneof(
  weighed(3, { do: fc.constant("wait"), ms: fc.constantFrom(1, 2_000, 9_000, 60_000) }),
  weighed(1, { do: fc.constant("wait"), ms: fc.constantFrom(30 * 60_000, 45 * day) }),
  weighed(3, { do: fc.constant("start"), application, customer, named, words }),
  weighed(4, { do: fc.constant("exchange"), application, index, right }),
  weighed(4, { do: fc.constant("run"), application, index, named, right }),
  weighed(1, { do: fc.constant("revoke"), application, index }),
  weighed(1, { do: fc.constant("abort"), index }),
  weighed(1, { do: fc.constant("delete"), index }),
)
type Command = typeof command extends fc.Arbitrary<infer Value> ? Value : never
type Of<Name extends Command["do"]> = Extract<Command, { readonly do: Name }>

/** What the model knows of a run: when its login is judged and how, and when it is over. */
interface Run {
  readonly application: string
  readonly customer: string
  readonly named: boolean
  readonly words: Words
  readonly execution_id: string
  readonly ticket: string | undefined
  readonly token: Token | undefined
  judgedAt: number
  accepted: boolean
  closesAt: number
  deleted: boolean
  spent: boolean
}
interface Token {
  readonly application: string
  readonly customer: string
  readonly words: Words
  readonly token_id: string
  readonly token_key: string
  readonly exchangedAt: number
  revoked: boolean
}

class World extends DirectCaller {
  readonly runs: Array<Run> = []
  readonly tokens: Array<Token> = []
  /** What the answers were, to see that the commands lead everywhere. */
  readonly reached = new Set<string>()
  names = 0

  constructor() {
    super(Date.UTC(2026, 10, 21))
  }
  body(customer_id: string, named: boolean) {
    this.names += 1
    return { engine_reference, customer_id, ...(named ? { external_execution_id: `x-${this.names}` } : {}) }
  }
  conflicts(about: { application: string; customer: string; named: boolean; token: Token | undefined }) {
    return this.runs.some(
      (run) =>
        run.application === about.application &&
        run.customer === about.customer &&
        !run.deleted &&
        this.now < run.closesAt &&
        (!run.named || !about.named || (about.token !== undefined && run.token === about.token)),
    )
  }
  /** Runs of this customer so far, whoever they went: words that turn count them. */
  begin(about: Pick<Run, "application" | "customer" | "named" | "words" | "token">, stillborn: boolean) {
    const ordinal = this.runs.filter(
      (run) => run.application === about.application && run.customer === about.customer,
    ).length
    const fails = about.words === "refused" || (about.words === "turning" && ordinal >= 2)
    return {
      ...about,
      judgedAt: stillborn ? Number.POSITIVE_INFINITY : this.now + (fails ? 11_000 : 2_000),
      accepted: !fails,
      closesAt: stillborn ? this.now : this.now + 11_000,
      deleted: false,
      spent: false,
    }
  }
  statusOf(token: Token) {
    if (token.revoked) return "revoked"
    if (this.now >= token.exchangedAt + 90 * day) return "expired"
    const locked = this.runs.some((run) => run.token === token && !run.accepted && run.judgedAt <= this.now)
    return locked ? "locked" : "active"
  }
}

const start = (world: World, { application: app, customer: who, named, words }: Of<"start">) => {
  const about = { application: app, customer: who, named, words, token: undefined }
  const conflicts = world.conflicts(about)
  const answer = world.call(
    app,
    startExecution({
      ...world.body(who, named),
      parameters: { username: wordsOf[words], password: "correct" },
      base_configurations: { tokenized_access: true },
    }),
  )
  expect(answer._tag).toBe(app === "incapable" ? "Refused" : conflicts ? "AlreadyExecuting" : "Accepted")
  world.reached.add(`start ${answer._tag}`)
  if (answer._tag !== "Accepted") return
  const { execution_id, ticket } = answer
  world.runs.push({ ...world.begin(about, false), execution_id, ticket })
}

const exchange = (world: World, { application: app, index: at, right }: Of<"exchange">) => {
  const ticketed = world.runs.filter(({ ticket }) => ticket !== undefined)
  const run = ticketed.at(-1 - at)
  if (run?.ticket === undefined) return
  const ticket = right ? run.ticket : `${run.ticket}0`
  const answer = world.call(app, exchangeTicket({ execution_id: run.execution_id, ticket }))
  const inWindow = run.accepted && world.now >= run.judgedAt && world.now < run.judgedAt + 30 * 60_000
  const may = right && inWindow && !run.spent && !run.deleted && run.application === app
  expect(answer._tag).toBe(may ? "Exchanged" : "Forbidden")
  world.reached.add(answer._tag)
  const event = world.events.at(-1)
  if (event?._tag === "ExchangeRefused") {
    if (run.spent && run.application === app) expect(event.fault).toBe("spent")
    world.reached.add(event.fault)
  }
  if (answer._tag !== "Exchanged") return
  run.spent = true
  const { customer, words } = run
  world.tokens.push({
    application: app,
    customer,
    words,
    ...answer.token,
    exchangedAt: world.now,
    revoked: false,
  })
}

const runToken = (world: World, { application: app, index: at, named, right }: Of<"run">) => {
  const token = world.tokens.at(-1 - at)
  if (token === undefined) return
  const { token_id } = token
  const token_key = right ? token.token_key : `${token.token_key}0`
  const about = { application: app, customer: token.customer, named, words: token.words, token }
  const refused = app === "incapable" ? "Refused" : app === token.application ? undefined : "NotFound"
  const expected = refused ?? (world.conflicts(about) ? "AlreadyExecuting" : "Accepted")
  const body = { ...world.body(token.customer, named), token: { token_id, token_key } }
  const answer = world.call(app, startTokenized(body))
  expect(answer._tag).toBe(expected)
  world.reached.add(`run ${answer._tag}`)
  if (answer._tag !== "Accepted") return
  const { execution_id } = answer
  const rejected = !right || world.statusOf(token) !== "active"
  const fault = rejected ? "T10N_REJECTED" : token.words === "unreadable" ? "T10N_EXCEPTION" : undefined
  world.runs.push({ ...world.begin(about, fault !== undefined), execution_id, ticket: undefined })
  const execution = world.core.state.executions.get(execution_id)
  const phase = execution === undefined ? undefined : momentAt(execution, world.now).phase
  expect(phase?.status_reason).toBe(fault ?? "ACCEPTED")
  world.reached.add(`run ${phase?.status_reason} of ${world.statusOf(token)}`)
}

const revoke = (world: World, { application: app, index: at }: Of<"revoke">) => {
  const token = world.tokens.at(-1 - at)
  if (token === undefined) return
  const { _tag } = world.call(app, revokeToken(token.token_id))
  expect(_tag).toBe(app !== token.application ? "NotFound" : token.revoked ? "NotModified" : "NoContent")
  world.reached.add(`revoke ${_tag} of ${world.statusOf(token)}`)
  if (_tag === "NoContent") token.revoked = true
}

const abort = (world: World, at: number) => {
  const run = world.runs.at(-1 - at)
  if (run === undefined) return
  const { _tag } = world.call(run.application, abortExecution(run.execution_id))
  const open = world.now < run.closesAt
  expect(_tag).toBe(run.deleted ? "NotFound" : open ? "NoContent" : "NotModified")
  if (_tag !== "NoContent") return
  run.closesAt = world.now
  if (run.judgedAt > world.now) run.judgedAt = Number.POSITIVE_INFINITY
}

const remove = (world: World, at: number) => {
  const run = world.runs.at(-1 - at)
  if (run === undefined) return
  const { _tag } = world.call(run.application, deleteExecution(run.execution_id))
  expect(_tag).toBe(run.deleted ? "NotFound" : world.now < run.closesAt ? "Conflict" : "NoContent")
  if (_tag === "NoContent") run.deleted = true
}

const act = (world: World, next: Command) => {
  switch (next.do) {
    case "wait":
      world.now += next.ms
      return
    case "start":
      return start(world, next)
    case "exchange":
      return exchange(world, next)
    case "run":
      return runToken(world, next)
    case "revoke":
      return revoke(world, next)
    case "abort":
      return abort(world, next.index)
    case "delete":
      return remove(world, next.index)
  }
}

/** A run that was stopped before its login was judged has a ticket for nothing. */
const endOfNever = (run: Run) => (Number.isFinite(run.judgedAt) ? Number.POSITIVE_INFINITY : run.closesAt)

/** What has to be true after each step, whatever it was. */
const look = (world: World) => {
  const newest = world.events.at(-1)?.at ?? 0
  for (const token of world.tokens) {
    const stored = world.core.state.tokens.tokens.get(token.token_id)
    if (stored === undefined) throw new Error("the token is not in the state")
    expect(tokenStatusAt(world.core.state, stored, world.now)).toBe(world.statusOf(token))
    const gone = token.revoked || newest >= token.exchangedAt + 90 * day
    expect(stored.sealed_login === undefined).toBe(gone)
    const open = world.runs.filter((run) => run.token === token && !run.deleted && world.now < run.closesAt)
    expect(open.length).toBeLessThanOrEqual(1)
  }
  for (const run of world.runs.filter(({ ticket }) => ticket !== undefined)) {
    const over = run.accepted ? run.judgedAt + 30 * 60_000 : run.closesAt
    // The fold looks for tickets that are over every five minutes.
    const gone = run.spent || run.deleted || newest >= Math.min(over, endOfNever(run)) + 5 * 60_000
    if (gone) expect(world.core.state.tokens.tickets.get(run.execution_id)).toHaveProperty("gone")
  }
}

const placesToReach = [
  "Exchanged, wrong_ticket, spent, expired, deleted, foreign, not_enabled, login_not_accepted",
  "run ACCEPTED of active, run T10N_EXCEPTION of active, run T10N_REJECTED of active",
  "run T10N_REJECTED of expired, run T10N_REJECTED of locked, run T10N_REJECTED of revoked",
  "run AlreadyExecuting, run NotFound, run Refused, revoke NoContent of active",
  "revoke NotModified of revoked, revoke NotFound of active",
].flatMap((places) => places.split(", "))

it("tickets and tokens live as the model says, in any order of events [token-move 1] [token-move 4] [ticket-rule 1] [limit 6] [limit 7]", () => {
  const reached = new Set<string>()
  fc.assert(
    fc.property(fc.array(command, { maxLength: 80, size: "max" }), (commands) => {
      const world = new World()
      for (const next of commands) {
        act(world, next)
        look(world)
      }
      for (const place of world.reached) reached.add(place)
      const replayed = emptyState()
      for (const event of world.events) applyEvent(replayed, event)
      expect(replayed.tokens).toEqual(world.core.state.tokens)
    }),
    { numRuns: 150, seed: 20_261_121 },
  )
  expect([...reached]).toEqual(expect.arrayContaining(placesToReach))
})
