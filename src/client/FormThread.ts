/**
 * Checks forms in a thread of their own, with limited memory and time for each request: if a form takes
 * more, its thread is ended and the form is reported as unusable, while this process continues, handles
 * signals and starts another thread for the next form. The thread is started when a form is first checked
 * and ends with the layer; an idle thread keeps no process alive. Its time is the machine's, however fast
 * the run's clock goes.
 */
import { Worker } from "node:worker_threads"
import { Context, Duration, Effect, Exit, Layer, Schema, Semaphore } from "effect"
import { inMachineTime } from "../base/Time.ts"
import type { FormAnswer, FormRequest, Unusable } from "./FitForms.ts"

// A form can be built to burn time or memory, so its check must be stoppable. Whatever a form does to its
// checker is an answer about the form, never a failure.

/** No form can be checked at all, for a reason on this machine. Ends planning. */
export class FormsUncheckable extends Schema.TaggedError<FormsUncheckable>()("FormsUncheckable", {
  message: Schema.String,
}) {}

export class FormChecker extends Context.Service<
  FormChecker,
  { readonly check: (request: FormRequest) => Effect.Effect<FormAnswer, FormsUncheckable> }
>()("nightjar/forms/FormChecker") {}

/** Beside this file, as source or bundled. */
const workerFile = new URL(
  import.meta.url.endsWith(".ts") ? "FormWorker.ts" : "FormWorker.js",
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
  new FormsUncheckable({ message: `forms cannot be checked: their thread does not start (${why})` })

const openThread = (memoryMb: number): Worker =>
  new Worker(workerFile, {
    name: "forms",
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: memoryMb, maxYoungGenerationSizeMb: 16 },
  })

interface Listeners {
  readonly message: (said: FormAnswer) => void
  readonly error: (cause: Error) => void
  readonly exit: () => void
}

/** Hears only the first of them. A thread's other listeners are its own, and it needs them. */
const listen = (thread: Worker, listeners: Listeners): Effect.Effect<void> => {
  const silence = () => {
    thread.off("message", message)
    thread.off("error", error)
    thread.off("exit", exit)
  }
  const message = (said: FormAnswer) => {
    silence()
    listeners.message(said)
  }
  const error = (cause: Error) => {
    silence()
    listeners.error(cause)
  }
  const exit = () => {
    silence()
    listeners.exit()
  }
  thread.on("message", message).on("error", error).on("exit", exit)
  return Effect.sync(silence)
}

const startThread = Effect.fnUntraced(function* ({ memoryMb, startWithin }: Bounds) {
  const thread = yield* Effect.try({
    try: () => openThread(memoryMb),
    catch: (cause) => notStarted(cause instanceof Error ? cause.message : String(cause)),
  })
  const ready = Effect.callback<void, FormsUncheckable>((resume) =>
    listen(thread, {
      message: () => resume(Effect.void),
      error: ({ message }) => resume(Effect.fail(notStarted(message))),
      exit: () => resume(Effect.fail(notStarted("it ended immediately"))),
    }),
  )
  yield* ready.pipe(
    Effect.timeoutOrElse({
      duration: startWithin,
      orElse: () => Effect.fail(notStarted(`it takes longer than ${Duration.format(startWithin)}`)),
    }),
    Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : endThread(thread))),
  )
  return thread
})

/** What it says while it is being ended does not matter. */
const endThread = (thread: Worker) =>
  Effect.promise(() => {
    thread.on("error", () => undefined)
    return thread.terminate()
  })

/** Fails if the thread ended or has to be ended: that too says something about the form. */
const askThread = (thread: Worker, request: FormRequest, { memoryMb, answerWithin }: Bounds) =>
  Effect.callback<FormAnswer, Unusable>((resume) => {
    const silence = listen(thread, {
      message: (answer: FormAnswer) => resume(Effect.succeed(answer)),
      error: (cause) => resume(Effect.fail(unusable(tellEnd(cause, memoryMb)))),
      exit: () => resume(Effect.fail(unusable("the checker exited while checking it"))),
    })
    thread.ref()
    thread.postMessage(request)
    return silence
  }).pipe(
    Effect.timeoutOrElse({
      duration: answerWithin,
      orElse: () => Effect.fail(unusable(`checking it takes longer than ${Duration.format(answerWithin)}`)),
    }),
  )

/** Never the error's own words, which may hold a value. */
const tellEnd = (cause: unknown, memoryMb: number): string =>
  cause instanceof Error && "code" in cause && cause.code === "ERR_WORKER_OUT_OF_MEMORY"
    ? `checking it takes more than ${memoryMb} MB`
    : "checking it crashes the checker"

const make = Effect.fnUntraced(function* (within: Bounds) {
  const turn = yield* Semaphore.make(1)
  let current: Worker | undefined

  const stop = Effect.suspend(() => {
    const thread = current
    current = undefined
    return thread === undefined ? Effect.void : endThread(thread)
  })
  yield* Effect.addFinalizer(() => stop)

  const ask = Effect.fnUntraced(function* (request: FormRequest) {
    const thread = (current ??= yield* startThread(within))
    const answer = yield* askThread(thread, request, within).pipe(
      Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : stop)),
      Effect.catch((ended) => Effect.succeed<FormAnswer>(ended)),
    )
    thread.unref()
    return answer
  })

  return FormChecker.of({
    check: (request) => inMachineTime(turn.withPermits(1)(ask(request))),
  })
})

export const FormThread = {
  layer: (changes: Partial<Bounds> = {}) => Layer.effect(FormChecker, make({ ...bounds, ...changes })),
}

const checking = { defaultValue: (): Layer.Layer<FormChecker> => FormThread.layer() }

/** What a run checks forms with. Tests whose forms are known do without a thread for every run. */
export const FormChecking = Context.Reference("nightjar/forms/FormChecking", checking)
