/**
 * A target of webhooks for tests: an HttpClient in the dispatcher's own fiber that notes every delivery with
 * its time, and answers as it is told.
 */
import { Cause, Clock, Context, Effect, Exit, Layer, Stream } from "effect"
import { HttpClient, HttpClientError, HttpServerResponse, type HttpClientRequest } from "effect/http"
import { HookDispatcher } from "../../../src/sandbox/server/HookDispatcher.ts"
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/server/Sandbox.ts"
import { World } from "../../simulation/World.ts"
import { Caller, field, inProcess, textField } from "../server/Caller.ts"

/** `hang` never answers, `cut` and `refused` break the connection after and before the request, `torn` in a 200. */
export type TargetAnswer = number | "hang" | "cut" | "refused" | "torn"

export interface Received {
  readonly at: number
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

export class HookTarget extends Context.Service<
  HookTarget,
  {
    readonly received: ReadonlyArray<Received>
    /** What was received since the last time it was asked: event, reason and seconds after `from`. */
    readonly news: () => ReadonlyArray<Received>
    /** Answers of the deliveries to come; then 204 again. */
    readonly answerWith: (...answers: ReadonlyArray<TargetAnswer>) => void
    readonly client: HttpClient.HttpClient
  }
>()("test/sandbox/HookTarget") {
  static readonly layer = Layer.sync(HookTarget, () => makeTarget())
}

const textOf = (request: HttpClientRequest.HttpClientRequest): string =>
  request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : ""

const transportError = (request: HttpClientRequest.HttpClientRequest, code: string) =>
  new HttpClientError.HttpClientError({
    reason: new HttpClientError.TransportError({ request, cause: Object.assign(new Error(code), { code }) }),
  })

const makeTarget = (): HookTarget["Service"] => {
  const received: Array<Received> = []
  const answers: Array<TargetAnswer> = []
  let seen = 0
  const client = HttpClient.make((request, url) =>
    Effect.gen(function* () {
      const answer = answers.shift() ?? 204
      if (answer === "refused") return yield* transportError(request, "ECONNREFUSED")
      const at = yield* Clock.currentTimeMillis
      const headers = { ...request.headers }
      received.push({ at, url: url.href, headers, body: JSON.parse(textOf(request)) as unknown })
      if (answer === "cut") return yield* transportError(request, "ECONNRESET")
      if (answer === "hang") return yield* Effect.never
      if (answer === "torn") {
        const torn = HttpServerResponse.stream(Stream.fail("torn"), { status: 200 })
        return HttpServerResponse.toClientResponse(torn, { request })
      }
      return HttpServerResponse.toClientResponse(HttpServerResponse.empty({ status: answer }), { request })
    }),
  )
  const news = () => {
    const fresh = received.slice(seen)
    seen = received.length
    return fresh
  }
  return { received, news, answerWith: (...more) => void answers.push(...more), client }
}

/** The dispatcher, sending to the target and nowhere else. */
export const dispatcherToTarget = HookDispatcher.layer().pipe(
  Layer.provide(
    Layer.effect(
      HttpClient.HttpClient,
      Effect.map(HookTarget, ({ client }) => client),
    ),
  ),
  Layer.provideMerge(HookTarget.layer),
)

/** Runs to its end in a world that begins with the epoch, and in which nothing waits for the machine. */
export const inVirtualTime = <A, E>(body: Effect.Effect<A, E>): A => {
  const exit = World.make({ startMs: 0, seed: 7 }).run(body)
  if (Exit.isSuccess(exit)) return exit.value
  throw Cause.squash(exit.cause)
}

/** Lets time pass, and everything happen that is due at its end. */
export const pass = (seconds: number) =>
  Effect.andThen(Effect.sleep(Math.round(seconds * 1000) - 1), Effect.sleep(1))

export const webhookUrl = "https://hooks.invalid/in"

type HookSteps<A> = (
  caller: Caller["Service"],
  target: HookTarget["Service"],
) => Generator<Effect.Effect<unknown, never, Caller | HookTarget | Sandbox>, A, never>

/** These steps with the service, its dispatcher and the target. */
export const night = <A>(steps: HookSteps<A>, options: Partial<SandboxOptions> = {}) => {
  const service = inProcess({ seed: 7, webhooks: [{ url: webhookUrl }], ...options })
  return Effect.flatMap(Effect.all([Caller, HookTarget]), ([caller, target]) =>
    Effect.gen(() => steps(caller, target)),
  ).pipe(Effect.provide(dispatcherToTarget.pipe(Layer.provideMerge(service))))
}

/** The same, in virtual time. */
export const run = <A>(steps: HookSteps<A>, options: Partial<SandboxOptions> = {}): A =>
  inVirtualTime(night(steps, options))

export const endHook = (started: unknown) =>
  Effect.flatMap(Caller, (caller) =>
    Effect.map(caller.read(textField(started, "execution_id")), (state) => field(state, "end_hook")),
  )

/** Event, reason, and seconds since the epoch's beginning in which tests live. */
export const told = ({ at, body }: Received) => [
  at / 1000,
  field(body, "event"),
  field(body, "status_reason"),
]
