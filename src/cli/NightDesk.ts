/**
 * The running nights at a private socket in the output folder (`nightjar.sock`): others ask what they do and
 * steer them, in JSON, one line each way. An order is for all of them. It never delays or fails a night; if
 * the socket cannot be opened, a line says so and the nights run without it.
 */
import { Context, Effect, Option, Schema } from "effect"
import { NightPicture } from "../task/NightPicture.ts"
import { Progress } from "../task/Progress.ts"
import type { ProgressEvent } from "../task/Progress.ts"
import { NotSteered, Order, steerAll, SteeredNight, Steering } from "../task/Steering.ts"
import type { SteerableNight } from "../task/Steering.ts"
import type { RunNews } from "../ledger/LiveFacts.ts"
import { askLine, serveLines } from "../base/LineSocket.ts"
import { warn } from "./Output.ts"

const socketName = "nightjar.sock"

/** What others may send. */
const Asked = Schema.Union([Schema.TaggedStruct("Look", {}), Order])
const Answer = Schema.Union([
  /** `beside`: the others, if several go on. */
  Schema.TaggedStruct("Night", {
    night: NightPicture,
    beside: Schema.optionalKey(Schema.Array(NightPicture)),
  }),
  Schema.TaggedStruct("Steered", {
    ...SteeredNight.fields,
    beside: Schema.optionalKey(Schema.Array(SteeredNight)),
  }),
  NotSteered,
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

const withOthers = <A>(others: ReadonlyArray<A>) => (others.length === 0 ? {} : { beside: others })

/** The night that executes, or as it was when it last did. */
const pictureAt = ({ night, last, published }: Desk): NightPicture | undefined =>
  night === undefined ? last : lookAt(night, published)

const answerTo = (desks: ReadonlySet<Desk>, line: string): Answer => {
  const asked = Option.getOrUndefined(readAsked(line))
  if (asked === undefined) return { _tag: "NotUnderstood" }
  const away = [...desks].find((desk) => desk.away !== undefined)?.away
  const idle: Answer = { _tag: "NotExecuting", ...(away === undefined ? {} : { away }) }
  if (asked._tag === "Look") {
    const [night, ...others] = [...desks].flatMap((desk) => pictureAt(desk) ?? [])
    return night === undefined ? idle : { _tag: "Night", night, ...withOthers(others) }
  }
  const steered = steerAll(
    [...desks].flatMap(({ night }) => night ?? []),
    asked,
  )
  if (steered === undefined) return idle
  if ("_tag" in steered) return steered
  const [first, ...others] = steered
  return first === undefined ? idle : { _tag: "Steered", ...first, ...withOthers(others) }
}

/** A desk's own view of its run: it is told everything, and holds the run while that executes. */
const servicesOf = (desk: Desk, { tell }: Context.Service.Shape<typeof Progress>) => {
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
  return Context.make(Progress, { tell: noted }).pipe(
    Context.add(Steering, { hold, look: () => pictureAt(desk) }),
  )
}

/**
 * Opens the socket until the scope ends. Each night that joins is seen and steered there until its own scope
 * ends, and tells its progress on.
 */
export const openDesk = Effect.fnUntraced(function* (output: string) {
  const desks = new Set<Desk>()
  yield* serveLines(output, socketName, (line) => writeAnswer(answerTo(desks, line))).pipe(
    Effect.catchTag("SocketUnusable", ({ message }) => warn("night-unwatched", { detail: message })),
  )
  return (progress: Context.Service.Shape<typeof Progress>) =>
    Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => {
          const desk: Desk = { night: undefined, last: undefined, away: undefined, published: undefined }
          desks.add(desk)
          return desk
        }),
        (desk) => Effect.sync(() => desks.delete(desk)),
      ),
      (desk) => servicesOf(desk, progress),
    )
})

/** Asks the nights that run in this folder; fails if none does. */
export const askNight = Effect.fn("NightDesk.ask")(function* (output: string, asked: typeof Asked.Type) {
  const line = yield* askLine(output, socketName, writeAsked(asked))
  return yield* readAnswer(line)
})

/** The nights that run here; none if no night does, or only such that are not executing yet. */
export const runningNights = (output: string) =>
  askNight(output, { _tag: "Look" }).pipe(
    Effect.map((answer) => (answer._tag === "Night" ? [answer.night, ...(answer.beside ?? [])] : [])),
    Effect.orElseSucceed((): ReadonlyArray<NightPicture> => []),
  )

/** Who works in this folder: nights that execute, or a process that does something else or has just begun. */
export interface WorkHere {
  readonly nights: ReadonlyArray<NightPicture>
  readonly isHeld: boolean
}

export const workIn = Effect.fnUntraced(function* (output: string) {
  const { isFolderLocked } = yield* Effect.promise(() => import("../base/FolderLock.ts"))
  const isHeld = yield* Effect.sync(() => isFolderLocked(`${output}/run.lock`))
  // Asked last: what is held then may have begun to execute.
  const nights = isHeld ? yield* runningNights(output) : []
  return { nights, isHeld } satisfies WorkHere as WorkHere
})

export const isRunning = ({ nights }: WorkHere, run_id: string): boolean =>
  nights.some((night) => night.run_id === run_id)

/** A process that executes nothing yet may be about to resume it: then nobody knows. */
export const isCutOff = (
  work: WorkHere,
  { run_id, ended }: { readonly run_id: string; readonly ended: object | undefined },
): boolean => ended === undefined && (!work.isHeld || work.nights.length > 0) && !isRunning(work, run_id)
