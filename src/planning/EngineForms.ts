/**
 * Engines as planning knows them: their forms, kept for half a day in the ledger as section 8 advises, and
 * compiled once. Whether an engine can be used right now is never kept: a form from the cache says nothing
 * about it, and one that is out of date still serves to check parameters while the engine is away. An
 * unknown engine is never kept.
 */
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { EngineDetails } from "../contract/Engine.ts"
import { Ledger } from "../ledger/Ledger.ts"
import type { CachedForm, LedgerFailed } from "../ledger/Ledger.ts"
import { compileForm } from "./CompiledForm.ts"
import type { CompiledForm } from "./CompiledForm.ts"

/** No engine can be looked up: the service refuses the secret or cannot be reached. Ends planning. */
export class CatalogueFailed extends Schema.TaggedError<CatalogueFailed>()("CatalogueFailed", {
  message: Schema.String,
}) {}

/** What the service says about one engine (section 4.9). */
export type EngineAnswer =
  | { readonly _tag: "Known"; readonly details: EngineDetails }
  /** 404 or 422. */
  | { readonly _tag: "Unknown" }
  /** 503, or an answer that lasting trouble with this one engine kept away. */
  | { readonly _tag: "Unavailable"; readonly detail?: string }
  | Unreadable

/** It answered 200, but with details that hold no form to log in with; they stay so until somebody acts. */
export interface Unreadable {
  readonly _tag: "Unreadable"
  readonly detail: string
}

/** The catalogue as planning needs it; the service's client stands behind it. */
export class EngineCatalogue extends Context.Service<
  EngineCatalogue,
  { readonly showEngine: (engine_reference: string) => Effect.Effect<EngineAnswer, CatalogueFailed> }
>()("nightjar/planning/EngineCatalogue") {}

/** An engine whose forms are compiled, each when it is first needed. */
export interface CompiledEngine {
  readonly details: EngineDetails
  readonly parameters: CompiledForm
  readonly configurations: CompiledForm
  readonly features: ReadonlyMap<string, { readonly configurations: CompiledForm }>
}

export type EngineFinding =
  /** `available` is what was seen; a form taken from the cache is `ready` until a start says otherwise. */
  | {
      readonly _tag: "Known"
      readonly engine: CompiledEngine
      readonly available: boolean
      readonly detail?: string
    }
  | { readonly _tag: "Unknown" }
  /** Cannot be used now, and its form was never seen. */
  | { readonly _tag: "Unavailable"; readonly detail?: string }
  | Unreadable

export const compileEngine = (details: EngineDetails): CompiledEngine => {
  const parameters = once(() => compileForm(details.parameters))
  const configurations = once(() => compileForm(details.configurations))
  const features = details.features.map((feature) => {
    const form = once(() => compileForm(feature.configurations))
    return [
      feature.code,
      {
        get configurations() {
          return form()
        },
      },
    ] as const
  })
  return {
    details,
    get parameters() {
      return parameters()
    },
    get configurations() {
      return configurations()
    },
    features: new Map(features),
  }
}

const once = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined
  return () => (made ??= { value: make() }).value
}

/** 2.2: an engine may answer its details and still be out of use. */
const isAvailable = ({ is_online, status }: EngineDetails): boolean => is_online && status !== "maintenance"

const freshMs = 12 * 60 * 60 * 1_000
const concurrency = 8
const StoredDetails = Schema.fromJsonString(EngineDetails)
const readDetails = Schema.decodeUnknownOption(StoredDetails)

type Failure = CatalogueFailed | LedgerFailed

export class FormCache extends Context.Service<
  FormCache,
  {
    /** From the cache when it is fresh, else from the service. */
    readonly find: (engine_reference: string) => Effect.Effect<EngineFinding, Failure>
    /** Always from the service: for when availability matters. */
    readonly look: (engine_reference: string) => Effect.Effect<EngineFinding, Failure>
    /** Each distinct engine once. */
    readonly findAll: (
      engine_references: Iterable<string>,
    ) => Effect.Effect<ReadonlyMap<string, EngineFinding>, Failure>
  }
>()("nightjar/planning/FormCache") {
  static readonly layer = Layer.effect(
    FormCache,
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const catalogue = yield* EngineCatalogue
      const compile = rememberCompiled()

      const stored = (form: CachedForm | undefined): CompiledEngine | undefined =>
        form === undefined
          ? undefined
          : compile(form.engine_reference, form.body, () => Option.getOrUndefined(readDetails(form.body)))

      const ask = Effect.fn("FormCache.ask")(function* (
        reference: string,
        known: CompiledEngine | undefined,
      ) {
        const answer = yield* catalogue.showEngine(reference)
        if (answer._tag === "Unknown" || answer._tag === "Unreadable") return answer satisfies EngineFinding
        if (answer._tag === "Unavailable") {
          const why = answer.detail === undefined ? {} : { detail: answer.detail }
          return known === undefined
            ? ({ _tag: "Unavailable", ...why } satisfies EngineFinding)
            : ({ _tag: "Known", engine: known, available: false, ...why } satisfies EngineFinding)
        }
        const body = JSON.stringify(answer.details)
        yield* ledger.cacheForm({
          engine_reference: reference,
          fetched_at: yield* Clock.currentTimeMillis,
          body,
        })
        const engine = compile(reference, body, () => answer.details) ?? compileEngine(answer.details)
        return { _tag: "Known", engine, available: isAvailable(answer.details) } satisfies EngineFinding
      })

      const look = Effect.fn("FormCache.look")(function* (reference: string) {
        return yield* ask(reference, stored(yield* ledger.cachedForm(reference)))
      })
      const find = Effect.fn("FormCache.find")(function* (reference: string) {
        const form = yield* ledger.cachedForm(reference)
        const engine = stored(form)
        const age = (yield* Clock.currentTimeMillis) - (form?.fetched_at ?? 0)
        if (engine === undefined || age < 0 || age >= freshMs) return yield* ask(reference, engine)
        return { _tag: "Known", engine, available: true } satisfies EngineFinding
      })
      const findAll = (references: Iterable<string>) =>
        Effect.map(
          Effect.forEach(
            new Set(references),
            (reference) => Effect.map(find(reference), (finding) => [reference, finding] as const),
            { concurrency },
          ),
          (found): ReadonlyMap<string, EngineFinding> => new Map(found),
        )
      return FormCache.of({ find, look, findAll })
    }),
  )
}

/** Keeps the newest compilation of each engine; the body tells whether it is still the same engine. */
const rememberCompiled = () => {
  const compiled = new Map<string, { readonly body: string; readonly engine: CompiledEngine }>()
  return (
    reference: string,
    body: string,
    read: () => EngineDetails | undefined,
  ): CompiledEngine | undefined => {
    const known = compiled.get(reference)
    if (known?.body === body) return known.engine
    const details = read()
    if (details === undefined) return undefined
    const engine = compileEngine(details)
    compiled.set(reference, { body, engine })
    return engine
  }
}
