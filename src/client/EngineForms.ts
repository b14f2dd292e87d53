/**
 * Engines as planning sees them: their forms, cached for half a day in the ledger as section 8 advises.
 * Only a form that was compiled is cached, and a cached one is compiled before it is trusted: a form that
 * cannot be used settles only its own engine's tasks. Whether an engine can be used right now is never
 * cached: a cached form says nothing about it, and an expired one can still check parameters while the
 * engine is away. An unknown engine is never cached.
 */
import { Clock, Context, Duration, Effect, Layer, Predicate, Redacted, Result, Schema } from "effect"
import { beyondText, count, textMax } from "./CompiledForm.ts"
import type { FormCase, RawFit, Unusable } from "./FitForms.ts"
import { FormChecker, type FormsUncheckable } from "./FormProcess.ts"
import { retryCall } from "./Pacing.ts"
import type { Findings } from "./Parameters.ts"
import { Service, type CallFailure, type EngineAnswer } from "./Service.ts"
import { readEngine, type EngineView } from "./Views.ts"
import { namesSecret } from "../jobs/HooksData.ts"
import { Ledger, type LedgerFailed } from "../ledger/Ledger.ts"
import { EngineReference } from "../service/Ids.ts"

/** No engine can be read: the service refuses the secret or cannot be reached. Ends planning. */
export class CatalogueFailed extends Schema.TaggedError<CatalogueFailed>()("CatalogueFailed", {
  message: Schema.String,
}) {}

/** It answered 200, but its details have no form to log in with; that will not change until somebody acts. */
interface Unreadable {
  readonly _tag: "Unreadable"
  readonly detail: string
}

/** What a service says about an engine that cannot be used now. */
export type Away = Omit<Extract<EngineAnswer, { readonly _tag: "EngineUnavailable" }>, "_tag">

/** An engine whose forms can be used. */
export interface SeenEngine {
  readonly details: EngineView
  /** The details, both compiled and as they are cached. */
  readonly body: string
  /** The parts of its forms that are not checked. */
  readonly warnings: ReadonlyArray<string>
  /** Fields that hold a secret according to the login form or their name. */
  readonly secret: ReadonlySet<string>
}

/** `available` is what was seen; a cached form counts as `ready` until a start says otherwise. */
export interface KnownEngine extends Away {
  readonly _tag: "Known"
  readonly engine: SeenEngine
  readonly available: boolean
  /** A preview asked in vain whether it can be used: why, and when its form was read. */
  readonly unasked?: { readonly why: string; readonly fetched_at: number }
}

export type EngineFinding =
  | KnownEngine
  /** 404 or 422. */
  | { readonly _tag: "Unknown" }
  /** Cannot be used now, and its form has never been seen. */
  | ({ readonly _tag: "Unavailable" } & Away)
  | Unreadable
  /** Its forms exceed the limits: no login is checked against them, and none is sent. */
  | Unusable

/** Its settings and its login in the job. */
export interface FitCase extends Omit<FormCase, "parameters"> {
  readonly parameters?: Redacted.Redacted<Readonly<Record<string, unknown>>>
}

/** What an engine's forms say about one case. */
export interface Fit {
  readonly settings: Findings
  readonly login?: Findings & {
    /** The values as they will be sent: strings converted to the type that the form asks for. */
    readonly parameters: Redacted.Redacted<Readonly<Record<string, unknown>>>
  }
}

/** 2.2: an engine may return its details and still be out of use. */
export const isAvailable = ({ is_online, status }: EngineView): boolean =>
  is_online && status !== "maintenance"

export const secretFields = ({ properties }: EngineView["parameters"]): ReadonlySet<string> =>
  new Set(
    Object.entries(properties).flatMap(([name, field]) => {
      const says =
        Predicate.isObject(field) && (field["format"] === "password" || field["writeOnly"] === true)
      return says || namesSecret(name) ? [name] : []
    }),
  )

const unusable = (why: string): Unusable => ({ _tag: "Unusable", why })

const bodyOf = (details: EngineView): string | Unusable => {
  const beyond = beyondText(details)
  if (beyond !== undefined) return unusable(beyond)
  const body = JSON.stringify(details)
  return body.length <= textMax ? body : unusable(`its details are longer than ${count(textMax)} characters`)
}

const freshMs = 12 * 60 * 60 * 1_000
const concurrency = 8
/** How many cases one request to the checker holds. */
const casesMax = 250

type Failure = CatalogueFailed | LedgerFailed

export class FormCache extends Context.Service<
  FormCache,
  {
    /** From the cache if it is fresh, otherwise from the service. */
    readonly find: (engine_reference: EngineReference) => Effect.Effect<EngineFinding, Failure>
    /** Always from the service: for when availability matters. */
    readonly look: (engine_reference: EngineReference) => Effect.Effect<EngineFinding, Failure>
    /** Each distinct engine once. */
    readonly findAll: (
      engine_references: Iterable<EngineReference>,
    ) => Effect.Effect<ReadonlyMap<string, EngineFinding>, Failure>
    /**
     * For a preview: what a run would find, and whether each engine can be used now, by one request for each.
     * Once the service does not answer, the others are not asked.
     */
    readonly previewAll: (
      engine_references: Iterable<EngineReference>,
    ) => Effect.Effect<ReadonlyMap<string, EngineFinding>, Failure>
    /** One answer per case, in their order; Unusable if checking exceeded its limits. */
    readonly fit: (
      engine: SeenEngine,
      cases: ReadonlyArray<FitCase>,
    ) => Effect.Effect<ReadonlyArray<Fit> | Unusable, CatalogueFailed>
  }
>()("nightjar/forms/FormCache") {
  static readonly layer = Layer.effect(
    FormCache,
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const service = yield* Service
      const checker = yield* FormChecker
      const { compile, fit } = makeForms(checker)

      /** Undefined if the cached form cannot be used: it is fetched again. */
      const kept = Effect.fn("FormCache.kept")(function* (reference: EngineReference) {
        const form = yield* ledger.cachedForm(reference)
        if (form === undefined) return undefined
        const details = readEngine(JSON.parse(form.body))
        const engine = Result.isSuccess(details) ? yield* compile(reference, details.success) : undefined
        return engine === undefined || "why" in engine ? undefined : { engine, fetched_at: form.fetched_at }
      })

      const ask = Effect.fn("FormCache.ask")(function* (
        reference: EngineReference,
        known: SeenEngine | undefined,
      ) {
        const answer = yield* showEngine(service, reference)
        if (answer._tag === "EngineUnknown") return { _tag: "Unknown" } satisfies EngineFinding
        if (answer._tag === "Unreadable") return answer satisfies EngineFinding
        if (answer._tag === "EngineUnavailable") {
          const { _tag, ...away } = answer
          return known === undefined
            ? ({ _tag: "Unavailable", ...away } satisfies EngineFinding)
            : ({ _tag: "Known", engine: known, available: false, ...away } satisfies EngineFinding)
        }
        const engine = yield* compile(reference, answer.engine)
        if ("why" in engine) return engine satisfies EngineFinding
        const fetched_at = yield* Clock.currentTimeMillis
        yield* ledger.cacheForm({ engine_reference: reference, fetched_at, body: engine.body })
        return { _tag: "Known", engine, available: isAvailable(answer.engine) } satisfies EngineFinding
      })

      const look = Effect.fn("FormCache.look")(function* (reference: EngineReference) {
        return yield* ask(reference, (yield* kept(reference))?.engine)
      })
      const finding = (fromCache: FromCache) =>
        Effect.fn("FormCache.find")(function* (reference: EngineReference) {
          const form = yield* kept(reference)
          const age = (yield* Clock.currentTimeMillis) - (form?.fetched_at ?? 0)
          // An engine whose page said that it is away may be back at any moment.
          const isUsable = form !== undefined && age >= 0 && age < freshMs && isAvailable(form.engine.details)
          return yield* isUsable ? fromCache(reference, form) : ask(reference, form?.engine)
        })
      const find = finding((_, { engine }) => Effect.succeed({ _tag: "Known", engine, available: true }))
      const eachOnce = (references: Iterable<EngineReference>, one: typeof find) =>
        Effect.map(
          Effect.forEach(
            new Set(references),
            (reference) => Effect.map(one(reference), (found) => [reference, found] as const),
            { concurrency },
          ),
          (found): ReadonlyMap<string, EngineFinding> => new Map(found),
        )
      const findAll = (references: Iterable<EngineReference>) => eachOnce(references, find)
      const previewAll = (references: Iterable<EngineReference>) =>
        Effect.suspend(() => eachOnce(references, finding(seenNow(service))))
      return FormCache.of({ find, look, findAll, previewAll, fit })
    }),
  )
}

interface CachedEngine {
  readonly engine: SeenEngine
  readonly fetched_at: number
}
type FromCache = (
  reference: EngineReference,
  form: CachedEngine,
) => Effect.Effect<EngineFinding, CatalogueFailed>

/** A run trusts a cached form and learns from its starts whether the engine can be used; a preview asks. */
const seenNow = (service: Service["Service"]): FromCache => {
  let silent: string | undefined
  return Effect.fnUntraced(function* (reference, { engine, fetched_at }) {
    const known = { _tag: "Known", engine, available: true } as const
    if (silent !== undefined) return { ...known, unasked: { why: silent, fetched_at } }
    const seen = yield* Effect.result(service.showEngine(reference))
    if (seen._tag === "Success") {
      const { success: answer } = seen
      if (answer._tag === "EngineUnknown") return { _tag: "Unknown" }
      if (answer._tag === "Engine") return { ...known, available: isAvailable(answer.engine) }
      const { _tag, ...away } = answer
      return { ...known, available: false, ...away }
    }
    const { failure } = seen
    // With a secret that is refused, a run would start nothing.
    if (failure._tag === "SecretRefused") yield* answerOf(service, failure)
    if (isSilent(failure)) silent = failure.message
    return { ...known, unasked: { why: failure.message, fetched_at } }
  })
}

/** It concerns the service and not one engine: the next request would wait as long. */
const isSilent = (failure: CallFailure): boolean =>
  failure._tag === "NotSent" ||
  failure._tag === "Throttled" ||
  (failure._tag === "AnswerLost" && failure.http_status === undefined)

/** Asks the checker, and keeps the newest answer per engine: the body shows whether it still applies. */
const makeForms = ({ check }: FormChecker["Service"]) => {
  const compiled = new Map<string, SeenEngine>()

  const compile = Effect.fn("FormCache.compile")(function* (reference: EngineReference, details: EngineView) {
    const body = bodyOf(details)
    if (typeof body !== "string") return body
    const known = compiled.get(reference)
    if (known?.body === body) return known
    const answer = yield* Effect.mapError(check({ body, cases: [] }), endPlanning)
    if (answer._tag === "Unusable") return answer
    const engine: SeenEngine = {
      details,
      body,
      warnings: answer.warnings,
      secret: secretFields(details.parameters),
    }
    compiled.set(reference, engine)
    return engine
  })

  const fit = Effect.fn("FormCache.fit")(function* ({ body }: SeenEngine, cases: ReadonlyArray<FitCase>) {
    const fits: Array<Fit> = []
    for (let at = 0; at < cases.length; at += casesMax) {
      const open = cases.slice(at, at + casesMax).map(({ features, configurations, parameters }) => ({
        features,
        configurations,
        ...(parameters === undefined ? {} : { parameters: Redacted.value(parameters) }),
      }))
      const answer = yield* Effect.mapError(check({ body, cases: open }), endPlanning)
      if (answer._tag === "Unusable") return answer
      fits.push(...answer.fits.map(close))
    }
    return fits
  })
  return { compile, fit }
}

const endPlanning = ({ message }: FormsUncheckable) => new CatalogueFailed({ message })

const close = ({ settings, parameters: login }: RawFit): Fit =>
  login === undefined
    ? { settings }
    : { settings, login: { ...login, parameters: Redacted.make(login.parameters) } }

// The catalogue for planning. Only a service that cannot be reached or refuses the secret ends planning;
// lasting trouble with one engine is that engine's.

const triesMax = 6
/** The longest that an engine may delay a plan: it is checked again before a start. */
const triedMaxMs = Duration.toMillis("2 minutes")

const showEngine = (service: Service["Service"], engine_reference: EngineReference) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    retryCall(service.showEngine(engine_reference), { triesMax, untilAt: now + triedMaxMs }),
  ).pipe(Effect.catch((failure) => answerOf(service, failure)))

const answerOf = Effect.fnUntraced(function* (
  { listEngines }: Service["Service"],
  failure: CallFailure,
): Effect.fn.Return<EngineAnswer | Unreadable, CatalogueFailed> {
  const detail = failure.message
  const isRefused = failure._tag === "SecretRefused"
  // One engine may be refused to an application whose secret is good.
  if (failure._tag === "NotSent" || (isRefused && (yield* Effect.isFailure(listEngines))))
    return yield* new CatalogueFailed({ message: detail })
  if (isRefused) return { _tag: "Unreadable", detail: notAllowed(failure.http_status) }
  if (failure._tag === "UnexpectedAnswer" && failure.http_status === 200)
    return { _tag: "Unreadable", detail }
  const retry_after = failure._tag === "Throttled" ? failure.retry_after : undefined
  return { _tag: "EngineUnavailable", detail, ...(retry_after === undefined ? {} : { retry_after }) }
})

const notAllowed = (http_status: number): string =>
  `showEngine: the service does not show this engine to the application (${http_status})`
