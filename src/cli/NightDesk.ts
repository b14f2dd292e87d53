/**
 * The running nights at a private socket in the output folder: others ask what they do and steer them, in
 * JSON, one line each way. An order is for all of them. No night depends on it.
 */
import { Context, Duration, Effect, Option, Schema, Stdio, Stream, Struct } from "effect"
import { askLine, serveLines } from "../base/LineSocket.ts"
import { counted } from "../base/Text.ts"
import { refuse } from "./Failures.ts"
import { Output, warn, writeOut } from "./Output.ts"
import { cleanValue } from "../privacy/CleanBody.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import { renderNight, renderNightLine } from "../report/RenderSummary.ts"
import { RunId } from "../service/Ids.ts"
import { localTime } from "../task/ChooseRun.ts"
import { NightPicture, NotSteered, Order, SteeredNight, Steering, steerAll } from "../task/NightPicture.ts"
import type { SteerableNight } from "../task/NightPicture.ts"
import { Progress, type ProgressEvent } from "../task/Progress.ts"

const socketName = "nightjar.sock"

const Asked = Schema.Union([Schema.TaggedStruct("Look", {}), Order])
const Answer = Schema.Union([
  Schema.TaggedStruct("Nights", { nights: Schema.Array(NightPicture) }),
  Schema.TaggedStruct("Steered", { nights: Schema.Array(SteeredNight) }),
  NotSteered,
  /** No task can start or end now: the service is awaited, the plan is made, or the tables are. */
  Schema.TaggedStruct("NotExecuting", {}),
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
  published: NightPicture["published"]
}

const lookAt = (night: SteerableNight, published: Desk["published"]): NightPicture =>
  published === undefined ? night.look() : { ...night.look(), published }

const noteProgress = (desk: Desk, event: ProgressEvent): void => {
  const { night, last } = desk
  if (event._tag === "Planned") {
    desk.last = undefined
    desk.published = undefined
  }
  if (last !== undefined) {
    const { built: _, ...before } = last
    if (event._tag === "Stage") desk.last = { ...before, stage: event.stage }
    if (event._tag === "Building") desk.last = { ...before, built: Struct.pick(event, ["done", "runs"]) }
  }
  if (event._tag === "Noted" && event.fact._tag === "InterimPublished" && night !== undefined) {
    const { version, tasks } = event.fact
    // On the night's own clock, like all that it shows.
    desk.published = { at: night.look().at, version, tasks }
  }
}

/** The night that executes, or as it was when it last did. */
const pictureAt = ({ night, last, published }: Desk): NightPicture | undefined =>
  night === undefined ? last : lookAt(night, published)

const answerTo = (desks: ReadonlySet<Desk>, line: string): Answer => {
  const asked = Option.getOrUndefined(readAsked(line))
  if (asked === undefined) return { _tag: "NotUnderstood" }
  if (asked._tag === "Look")
    return { _tag: "Nights", nights: [...desks].flatMap((desk) => pictureAt(desk) ?? []) }
  const nights = [...desks].flatMap(({ night }) => night ?? [])
  const steered = steerAll(nights, asked)
  if (steered === undefined) return { _tag: "NotExecuting" }
  return "_tag" in steered ? steered : { _tag: "Steered", nights: steered }
}

/** A desk's own view of its run: it is told everything, and holds the run while that executes. */
const servicesOf = (desk: Desk, { tell }: Context.Service.Shape<typeof Progress>) => {
  const hold = (night: SteerableNight) =>
    Effect.acquireRelease(
      Effect.suspend(() => {
        desk.night = night
        return tell({ _tag: "Stage", run_id: RunId.make(night.look().run_id), stage: "executing" })
      }),
      () =>
        Effect.sync(() => {
          desk.last = lookAt(night, desk.published)
          desk.night = undefined
        }),
    )
  const noted = (event: ProgressEvent) =>
    Effect.suspend(() => {
      noteProgress(desk, event)
      return tell(event)
    })
  return Context.make(Progress, { tell: noted }).pipe(
    Context.add(Steering, { hold, look: () => pictureAt(desk) }),
  )
}

/** Until the scope ends. Each night that joins is seen and steered there, and tells its progress on. */
export const openDesk = Effect.fnUntraced(function* (output: string) {
  const desks = new Set<Desk>()
  yield* serveLines(output, socketName, (line) => writeAnswer(answerTo(desks, line))).pipe(
    Effect.catchTag("SocketUnusable", ({ message }) => warn("night-unwatched", { detail: message })),
  )
  const join = (progress: Context.Service.Shape<typeof Progress>) =>
    Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => {
          const desk: Desk = { night: undefined, last: undefined, published: undefined }
          desks.add(desk)
          return desk
        }),
        (desk) => Effect.sync(() => desks.delete(desk)),
      ),
      (desk) => servicesOf(desk, progress),
    )
  return { join, look: () => [...desks].flatMap((desk) => pictureAt(desk) ?? []) }
})

/** Asks the nights that run in this folder; fails if none does. */
export const askNight = Effect.fn("NightDesk.ask")(function* (output: string, asked: typeof Asked.Type) {
  const line = yield* askLine(output, socketName, writeAsked(asked))
  return yield* readAnswer(line)
})

/** The nights that run here; none if no night does, or only such that are not executing yet. */
export const runningNights = (output: string) =>
  askNight(output, { _tag: "Look" }).pipe(
    Effect.map((answer) => (answer._tag === "Nights" ? answer.nights : [])),
    Effect.orElseSucceed(() => []),
  )

/** Who works in this folder: nights that execute, or a process that does something else or has just begun. */
export const workIn = Effect.fnUntraced(function* (output: string) {
  const { isFolderLocked } = yield* Effect.promise(() => import("../base/FolderLock.ts"))
  const isHeld = yield* Effect.sync(() => isFolderLocked(`${output}/run.lock`))
  // Asked last: what is held then may have begun to execute.
  const nights = isHeld ? yield* runningNights(output) : []
  return { nights, isHeld }
})
export type WorkHere = Effect.Success<ReturnType<typeof workIn>>

export const isRunning = ({ nights }: WorkHere, run_id: string): boolean =>
  nights.some((night) => night.run_id === run_id)

/** A process that executes nothing yet may be about to resume it: then nobody knows. */
export const isCutOff = (
  work: WorkHere,
  { run_id, ended }: { readonly run_id: string; readonly ended: object | undefined },
): boolean => ended === undefined && (!work.isHeld || work.nights.length > 0) && !isRunning(work, run_id)

const unstarted = ({ total: { queued, waiting } }: NightPicture): number =>
  queued + waiting.time + waiting.engine + waiting.conflict

const followed = ({ total }: NightPicture): string =>
  `${counted(total.running, "running task")} ${total.running === 1 ? "is" : "are"} followed to the end`

const saidOf = (order: Order, changed: boolean, night: NightPicture): string => {
  const { run_id, limits, deadline_at, paused_until } = night
  const now = changed ? "now" : "already"
  const tasks = counted(unstarted(night), "task")
  switch (order._tag) {
    case "Pause": {
      const over =
        deadline_at !== undefined && deadline_at < (paused_until ?? Infinity)
          ? `The deadline (${localTime(deadline_at, undefined)}) still counts.`
          : `A pause that nobody ends becomes a drain at ${localTime(paused_until ?? 0, undefined)}.`
      return (
        `${run_id} is ${now} paused: ${tasks} not started, ${followed(night)}.\n` +
        `\`nightjar resume\` ends the pause. ${over}`
      )
    }
    case "Resume":
      return changed ? `${run_id} starts tasks again: ${tasks} left.` : `${run_id} is not paused.`
    case "Drain":
      return (
        `${run_id} is ${now} draining: it starts nothing more, ${followed(night)}.\n` +
        "What is left ends with RUN_DRAINED and exit code 4; `nightjar run JOB` starts it."
      )
    case "Limit":
      return (
        `${run_id} ${changed ? "now" : "already"} has at most ${limits.max_in_flight} in flight and ` +
        `${limits.per_engine} per engine. What is running above that is followed to its end.`
      )
  }
}

const unheard = {
  absent: "night-not-running",
  silent: "night-silent",
  unanswered: "night-unanswered",
} as const

/** `pause`, `resume`, `drain` and `limit`; exit code 2 if no night obeys, 4 if that is not known. */
export const steerNight = Effect.fnUntraced(function* (output: string, order: Order) {
  const answer = yield* askNight(output, order).pipe(
    Effect.catchTags({
      SocketUnusable: ({ because }) => refuse(unheard[because ?? "absent"], { output }),
      SchemaError: () => refuse("night-other-version", { output }),
    }),
  )
  switch (answer._tag) {
    case "Steered":
      return { order, nights: answer.nights }
    case "NotSteered": {
      const { run_id, job_limits } = answer.night
      return yield* answer.why === "draining"
        ? refuse("night-draining", { run_id })
        : refuse("limit-above-job", job_limits)
    }
    case "NotExecuting":
    case "Nights":
      return yield* refuse("night-not-executing", { output })
    case "NotUnderstood":
      return yield* refuse("night-other-version", { output })
  }
})

type Steered = Effect.Success<ReturnType<typeof steerNight>>

export const steered = {
  json: ({ nights }: Steered) => {
    const [first, ...beside] = nights.map(({ changed, night }) => ({ changed, ...night }))
    return { ...first, ...(beside.length === 0 ? {} : { beside }) }
  },
  text: ({ order, nights }: Steered) => nights.map(({ changed, night }) => saidOf(order, changed, night)),
}

const frameEvery = Duration.seconds(1)
const lineEvery = Duration.seconds(5)

const escape = "\u001b["
/** A screen of our own, without a cursor; and back to what was there. */
const enter = `${escape}?1049h${escape}?25l`
const leave = `${escape}?25h${escape}?1049l`

/** One frame: written over the last one, so that nothing flickers. */
const frame = (lines: ReadonlyArray<string>): string =>
  `${escape}H${lines.map((line) => `${line}${escape}K`).join("\r\n")}${escape}J`

/** On a terminal a screen drawn in place, else a line at each change. Returns whether any night ran. */
export const watchNight = Effect.fn("WatchNight.watch")(function* (output: string, json: boolean) {
  const stdio = yield* Stdio.Stdio
  const first = yield* runningNights(output)
  if (first.length === 0) return false
  const isDrawn = !json && (yield* stdio.stdoutIsTerminal)
  yield* isDrawn ? draw(output, first) : list(output, first, json)
  return true
})

type Nights = ReadonlyArray<NightPicture>

/** Calls `show` with every picture until the nights that were there at first are over. */
const follow = <E, R>(
  output: string,
  first: Nights,
  every: Duration.Duration,
  show: (nights: Nights) => Effect.Effect<void, E, R>,
) =>
  Effect.gen(function* () {
    const watched = new Set(first.map(({ run_id }) => run_id))
    for (let nights = first; nights.some(({ run_id }) => watched.has(run_id));) {
      yield* show(nights)
      if (nights.every(({ run_id, stage }) => stage === "ended" || !watched.has(run_id))) return
      yield* Effect.sleep(every)
      nights = yield* runningNights(output)
    }
  })

const draw = Effect.fnUntraced(function* (output: string, first: Nights) {
  const { out } = yield* Output
  const stdio = yield* Stdio.Stdio
  const write = (text: string) => Effect.ignore(Stream.run(Stream.make(text), stdio.stdout()))
  yield* Effect.acquireRelease(write(enter), () => write(leave))
  yield* follow(output, first, frameEvery, (nights) => {
    // The size may change while we look on.
    const { columns, rows } = process.stdout
    const height = Math.floor((rows || 24) / nights.length)
    const screen = { width: (columns || 80) - 1, height, colour: out.colour, timezone: undefined }
    return write(frame(nights.flatMap((night) => renderNight(night, screen))))
  })
}, Effect.scoped)

const list = Effect.fnUntraced(function* (output: string, first: Nights, json: boolean) {
  const known = yield* KnownSecrets
  const last = new Map<string, string>()
  yield* follow(output, first, lineEvery, (nights) =>
    Effect.forEach(
      nights,
      (night) => {
        const line = renderNightLine(night)
        if (line === last.get(night.run_id)) return Effect.void
        last.set(night.run_id, line)
        const told = json ? JSON.stringify(cleanValue(night, known, "own")) : known.clean(line, "own")
        return writeOut(Stream.make(`${told}\n`))
      },
      { discard: true },
    ),
  )
})
