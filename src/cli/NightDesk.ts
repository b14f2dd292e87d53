/**
 * The running night at a private socket in the output folder (`nightjar.sock`): others ask what it does and
 * steer it, in JSON, one line each way. It never delays or fails the night; if the socket cannot be opened,
 * a line says so and the night runs without it.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import { NightPicture } from "../execution/NightPicture.ts"
import { Progress } from "../execution/Progress.ts"
import type { ProgressEvent } from "../execution/Progress.ts"
import { Order, Steered, Steering } from "../execution/Steering.ts"
import type { SteerableNight } from "../execution/Steering.ts"
import type { RunNews } from "../ledger/LiveFacts.ts"
import { askLine, serveLines } from "../foundation/LineSocket.ts"
import { warn } from "./Output.ts"

const socketName = "nightjar.sock"

/** What others may send. */
const Asked = Schema.Union([Schema.TaggedStruct("Look", {}), Order])
const Answer = Schema.Union([
  Schema.TaggedStruct("Night", { night: NightPicture }),
  Steered,
  /** No task can start or end now: the service is awaited, the plan is made, or the tables are. */
  Schema.TaggedStruct("NotExecuting", { away: Schema.optionalKey(Schema.String) }),
  /** Not one of the requests above. */
  Schema.TaggedStruct("NotUnderstood", {}),
])
export type Answer = typeof Answer.Type

const readAsked = Schema.decodeUnknownOption(Schema.fromJsonString(Asked))
const writeAsked = Schema.encodeSync(Schema.fromJsonString(Asked))
const readAnswer = Schema.decodeUnknownEffect(Schema.fromJsonString(Answer))
const writeAnswer = Schema.encodeSync(Schema.fromJsonString(Answer))

/** What the desk knows: the night that executes, or the last picture of one that is over. */
interface Desk {
  night: SteerableNight | undefined
  last: NightPicture | undefined
  away: string | undefined
  published: NightPicture["published"]
}

const lookAt = (night: SteerableNight, published: Desk["published"]): NightPicture =>
  published === undefined ? night.look() : { ...night.look(), published }

const noteProgress = (desk: Desk, event: ProgressEvent): void => {
  switch (event._tag) {
    case "Planned":
      desk.last = undefined
      desk.away = undefined
      desk.published = undefined
      return
    case "Noted":
      return notePublished(desk, event.fact)
    case "ServiceAway":
      desk.away = event.message
      return
    case "Stage":
      if (desk.last !== undefined) desk.last = { ...desk.last, stage: event.stage }
      return
    default:
      return
  }
}

/** On the night's own clock, like all that it shows. */
const notePublished = (desk: Desk, fact: RunNews): void => {
  const at = desk.night?.look().at
  if (fact._tag !== "InterimPublished" || at === undefined) return
  const { version, tasks } = fact
  desk.published = { at, version, tasks }
}

const answerTo = (desk: Desk, line: string): Answer => {
  const asked = Option.getOrUndefined(readAsked(line))
  if (asked === undefined) return { _tag: "NotUnderstood" }
  const { night, last, away, published } = desk
  if (night === undefined)
    return asked._tag === "Look" && last !== undefined
      ? { _tag: "Night", night: last }
      : { _tag: "NotExecuting", ...(away === undefined ? {} : { away }) }
  if (asked._tag !== "Look") return night.steer(asked)
  return { _tag: "Night", night: lookAt(night, published) }
}

export const NightDesk = {
  /** The progress that is there is told on. */
  layer: (output: string) =>
    Layer.unwrap(
      Effect.gen(function* () {
        const { tell } = yield* Progress
        const desk: Desk = { night: undefined, last: undefined, away: undefined, published: undefined }
        const hold = (night: SteerableNight) =>
          Effect.acquireRelease(
            Effect.sync(() => {
              desk.night = night
            }),
            () =>
              Effect.sync(() => {
                desk.last = lookAt(night, desk.published)
                desk.night = undefined
              }),
          )
        const noted = (event: ProgressEvent) =>
          Effect.andThen(
            Effect.sync(() => noteProgress(desk, event)),
            tell(event),
          )
        const serving = serveLines(output, socketName, (line) => writeAnswer(answerTo(desk, line))).pipe(
          Effect.catchTag("SocketUnusable", ({ message }) => warn("night-unwatched", { detail: message })),
        )
        return Layer.mergeAll(
          Layer.succeedContext(Context.make(Progress, { tell: noted })),
          Layer.succeedContext(Context.make(Steering, { hold })),
          Layer.effectDiscard(serving),
        )
      }),
    ),
}

/** Asks the night that runs in this folder; fails if none does. */
export const askNight = Effect.fn("NightDesk.ask")(function* (output: string, asked: typeof Asked.Type) {
  const line = yield* askLine(output, socketName, writeAsked(asked))
  return yield* readAnswer(line)
})

/** The night that runs here; none if there is none, or only one that is not executing yet. */
export const runningNight = (output: string) =>
  askNight(output, { _tag: "Look" }).pipe(
    Effect.map((answer) => (answer._tag === "Night" ? Option.some(answer.night) : Option.none())),
    Effect.orElseSucceed(() => Option.none<NightPicture>()),
  )
