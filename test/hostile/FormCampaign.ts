/**
 * Hostile forms one after the other, with an ordinary engine after each: whatever the form does, its own
 * engine is all that it may cost.
 */
import { Effect, Exit, Layer, Redacted, Result } from "effect"
import { readEngine } from "../../src/client/Views.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { FormCache, type EngineFinding } from "../../src/client/EngineForms.ts"
import { Service, UnexpectedAnswer, type CallFailure, type EngineAnswer } from "../../src/client/Service.ts"
import { engineDetails } from "../task/Samples.ts"
import { hostileEngine } from "./HostileForms.ts"
import { anId } from "../harness/Id.ts"

interface Campaign {
  readonly count: number
  readonly from: number
}

/** How often an answer came, and the time that all of them took. */
export interface Answered {
  readonly times: number
  readonly ms: number
}

/** Reading, compiling and checking, each within the thread's own bound, and starting a thread anew. */
const longestMs = 30_000

const good: EngineAnswer = { _tag: "Engine", engine: engineDetails() }
const asked = { features: [{ code: "accounts_read", configurations: { a: 1 } }], configurations: { b: 2 } }
const ordinary = { ...asked, configurations: {}, features: [] }

const answerOf = (text: string): Effect.Effect<EngineAnswer, CallFailure> => {
  const read = readEngine(JSON.parse(text))
  return Result.isSuccess(read)
    ? Effect.succeed({ _tag: "Engine", engine: read.success })
    : Effect.fail(new UnexpectedAnswer({ http_status: 200, message: read.failure }))
}

/** The words of a finding without its numbers, so that like counts with like. */
const kindOf = (finding: EngineFinding): string => {
  if (finding._tag === "Unusable") return `unusable: ${finding.why}`
  if (finding._tag === "Unreadable") return `unreadable: ${finding.detail}`
  if (finding._tag !== "Known") return finding._tag
  return finding.engine.warnings.length > 0 ? "usable, in part unchecked" : "usable"
}

const tryOne = Effect.fnUntraced(function* (seed: number) {
  const forms = yield* FormCache
  const ledger = yield* Ledger
  const reference = anId(`hostile:${seed}`)
  const complaints: Array<string> = []
  const { logins } = hostileEngine(seed)
  const finding = yield* forms.find(reference)
  let kind = kindOf(finding)
  if (finding._tag === "Known") {
    const fits = yield* forms.fit(
      finding.engine,
      logins.map((login) => ({ ...asked, parameters: Redacted.make(login) })),
    )
    if ("why" in fits) kind = `unusable once checked: ${fits.why}`
    else if (fits.length !== logins.length)
      complaints.push(`${fits.length} answers for ${logins.length} logins`)
  }
  const kept = yield* ledger.cachedForm(reference)
  if ((kept !== undefined) !== (finding._tag === "Known")) complaints.push(`kept though ${kind}, or not kept`)

  const neighbour = yield* forms.look(anId("bank:website"))
  const parameters = Redacted.make<Readonly<Record<string, unknown>>>({ username: "user", password: "pass" })
  const fits =
    neighbour._tag === "Known" ? yield* forms.fit(neighbour.engine, [{ ...ordinary, parameters }]) : []
  const fit = "why" in fits ? undefined : fits[0]
  if (fit?.login?.errors.length !== 0) complaints.push("an ordinary form is not answered after it")
  return { kind, complaints }
})

export const runCampaign = ({ count, from }: Campaign) => {
  const service = Layer.mock(Service, {
    showEngine: (reference) =>
      Effect.suspend(() => {
        const seed = /^hostile:(\d+)$/.exec(reference)?.[1]
        return seed === undefined ? Effect.succeed(good) : answerOf(hostileEngine(Number(seed)).body)
      }),
  })
  const layer = FormCache.layer.pipe(
    Layer.provideMerge(Layer.merge(service, Ledger.layer({ path: ":memory:" }))),
  )
  return Effect.gen(function* () {
    const answers = new Map<string, Answered>()
    const complaints: Array<string> = []
    let slowest = { seed: from, ms: 0 }
    let peakMb = 0
    for (let seed = from; seed < from + count; seed++) {
      const began = performance.now()
      const exit = yield* Effect.exit(tryOne(seed))
      const ms = performance.now() - began
      const found = Exit.isSuccess(exit) ? exit.value : { kind: "broken", complaints: [String(exit.cause)] }
      const before = answers.get(found.kind) ?? { times: 0, ms: 0 }
      answers.set(found.kind, { times: before.times + 1, ms: before.ms + ms })
      complaints.push(...found.complaints.map((complaint) => `seed ${seed}: ${complaint}`))
      if (ms > longestMs) complaints.push(`seed ${seed}: took ${ms.toFixed(0)} ms`)
      if (ms > slowest.ms) slowest = { seed, ms }
      peakMb = Math.max(peakMb, Math.round(process.memoryUsage.rss() / 1e6))
    }
    return { answers, complaints, slowest, peakMb }
  }).pipe(Effect.provide(layer))
}
