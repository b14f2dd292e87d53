/**
 * Checks forms in a process of their own, with limited memory and time for each request: if a form takes
 * more, that process is killed and the form is reported as unusable, while this one continues, handles
 * signals and starts another for the next form. It is started when a form is first checked and ends with the
 * layer; an idle one keeps nothing alive. Its time is the machine's, however fast the run's clock goes.
 */
import { fork, type ChildProcess } from "node:child_process"
import { Context, Duration, Effect, Exit, Layer, Schema, Semaphore } from "effect"
import { wordsOf } from "../base/Text.ts"
import { inMachineTime, limited } from "../base/Time.ts"
import type { FormAnswer, FormRequest, Unusable } from "./FitForms.ts"

// A form can be built to burn time or memory, so its check must be stoppable: in a thread of this process it
// was not always, as V8 ends the whole process where one allocation is beyond the limit of a thread. Whatever
// a form does to its checker is an answer about the form, never a failure.

/** No form can be checked at all, for a reason on this machine. Ends planning. */
export class FormsUncheckable extends Schema.TaggedError<FormsUncheckable>()("FormsUncheckable", {
  message: Schema.String,
}) {}

export class FormChecker extends Context.Service<
  FormChecker,
  { readonly check: (request: FormRequest) => Effect.Effect<FormAnswer, FormsUncheckable> }
>()("nightjar/forms/FormChecker") {}

/** Beside this file, as source or bundled. */
const hostFile = new URL(
  import.meta.url.endsWith(".ts") ? "FormHostWorker.ts" : "FormHostWorker.js",
  import.meta.url,
)

interface Bounds {
  /** For one request: compiling the forms of an engine, or checking some hundreds of logins against them. */
  readonly answerWithin: Duration.Duration
  readonly startWithin: Duration.Duration
  readonly memoryMb: number
}
const bounds: Bounds = {
  answerWithin: Duration.seconds(5),
  startWithin: Duration.seconds(60),
  memoryMb: 256,
}

const unusable = (why: string): Unusable => ({ _tag: "Unusable", why })

const notStarted = (why: string) =>
  new FormsUncheckable({ message: `forms cannot be checked: their process does not start (${why})` })

/** With which code it ends when a form takes too much memory, unless V8 aborts it. */
const outOfMemory = 77

const openChecker = (memoryMb: number): ChildProcess =>
  fork(hostFile, [String(memoryMb), String(outOfMemory)], {
    // The folder in which this process was started may be gone.
    cwd: "/",
    env: {},
    execArgv: [],
    serialization: "advanced",
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    // What goes wrong when nobody listens is no failure of this process.
  }).on("error", () => undefined)

/** What is heard of the process. */
type Heard =
  | { readonly _tag: "Said"; readonly answer: FormAnswer }
  | { readonly _tag: "Failed"; readonly message: string }
  | { readonly _tag: "Ended"; readonly code: number | null; readonly signal: NodeJS.Signals | null }

/** Asks, and hears only the first of them. A process' other listeners are its own, and it needs them. */
const hear = (checker: ChildProcess, request?: FormRequest): Effect.Effect<Heard> =>
  Effect.callback((resume) => {
    const said = (answer: unknown) => end({ _tag: "Said", answer: answer as FormAnswer })
    const failed = ({ message }: Error) => end({ _tag: "Failed", message })
    const ended = (code: number | null, signal: NodeJS.Signals | null) => end({ _tag: "Ended", code, signal })
    const silence = () => void checker.off("message", said).off("error", failed).off("exit", ended)
    const end = (heard: Heard) => {
      silence()
      resume(Effect.succeed(heard))
    }
    checker.on("message", said).on("error", failed).on("exit", ended)
    if (request !== undefined) checker.send(request, (failure) => failure !== null && failed(failure))
    return Effect.sync(silence)
  })

const startChecker = Effect.fnUntraced(function* ({ memoryMb, startWithin }: Bounds) {
  const checker = yield* Effect.try({
    try: () => openChecker(memoryMb),
    catch: (cause) => notStarted(wordsOf(cause)),
  })
  yield* hear(checker).pipe(
    Effect.flatMap((heard) => {
      if (heard._tag === "Said") return Effect.void
      return Effect.fail(notStarted(heard._tag === "Failed" ? heard.message : "it ended immediately"))
    }),
    limited({
      duration: startWithin,
      orElse: () => Effect.fail(notStarted(`it takes longer than ${Duration.format(startWithin)}`)),
    }),
    Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : endChecker(checker))),
  )
  return checker
})

const endChecker = (checker: ChildProcess) =>
  Effect.callback<void>((resume) => {
    if (checker.pid === undefined || checker.exitCode !== null || checker.signalCode !== null)
      return void resume(Effect.void)
    checker.once("exit", () => resume(Effect.void))
    checker.ref()
    checker.kill("SIGKILL")
  })

/** Fails if the process ended or has to be killed: that too says something about the form. */
const askChecker = (checker: ChildProcess, request: FormRequest, { memoryMb, answerWithin }: Bounds) =>
  Effect.sync(() => keepAlive(checker, true)).pipe(
    Effect.andThen(hear(checker, request)),
    Effect.flatMap((heard) =>
      heard._tag === "Said"
        ? Effect.succeed(heard.answer)
        : Effect.fail(
            unusable(isOutOfMemory(heard) ? `checking it takes more than ${memoryMb} MB` : crashed),
          ),
    ),
    limited({
      duration: answerWithin,
      orElse: () => Effect.fail(unusable(`checking it takes longer than ${Duration.format(answerWithin)}`)),
    }),
  )

/** An idle one, and the channel to it, keep this process alive no longer than it has to do. */
const keepAlive = (checker: ChildProcess, isAsked: boolean): void => {
  for (const handle of [checker, checker.channel]) {
    if (isAsked) handle?.ref()
    else handle?.unref()
  }
}

const crashed = "checking it crashes the checker"

const isOutOfMemory = (heard: Heard): boolean =>
  heard._tag === "Ended" && (heard.code === outOfMemory || heard.signal === "SIGABRT")

const make = Effect.fnUntraced(function* (within: Bounds) {
  const turn = yield* Semaphore.make(1)
  let current: ChildProcess | undefined

  const stop = Effect.suspend(() => {
    const checker = current
    current = undefined
    return checker === undefined ? Effect.void : endChecker(checker)
  })
  yield* Effect.addFinalizer(() => stop)

  const askOnce = Effect.fnUntraced(function* (request: FormRequest) {
    const checker = (current ??= yield* startChecker(within))
    const answer = yield* askChecker(checker, request, within).pipe(
      Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : stop)),
      Effect.catch((ended) => Effect.succeed<FormAnswer>(ended)),
    )
    keepAlive(checker, false)
    return answer
  })

  /** Somebody may have killed one that was idle, which says nothing about this form: a new one is asked. */
  const ask = Effect.fnUntraced(function* (request: FormRequest) {
    const wasIdle = current !== undefined
    const answer = yield* askOnce(request)
    return wasIdle && answer._tag === "Unusable" && answer.why === crashed ? yield* askOnce(request) : answer
  })

  return FormChecker.of({
    check: (request) => inMachineTime(turn.withPermits(1)(ask(request))),
  })
})

export const FormProcess = {
  layer: (changes: Partial<Bounds> = {}) => Layer.effect(FormChecker, make({ ...bounds, ...changes })),
}

const checking = { defaultValue: (): Layer.Layer<FormChecker> => FormProcess.layer() }

/** What a run checks forms with. Tests whose forms are known do without a process for every run. */
export const FormChecking = Context.Reference("nightjar/forms/FormChecking", checking)
