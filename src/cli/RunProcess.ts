/**
 * A program as a process: interrupts on SIGINT and SIGTERM (a second SIGINT quits at once, and neither
 * takes longer than twenty seconds), an exit code for every end, and a short message for every error. A
 * stack trace is shown only with `--log-level debug`.
 */
import { Cause, Duration, Effect, Exit, Fiber, Runtime } from "effect"
import type { CliError } from "effect/cli"
import { endingFor, endingOfCause } from "./Failures.ts"
import type { Ending, Failure } from "./Failures.ts"
import { exitCodes } from "../messages/ExitCodes.ts"
import { forTerminal } from "../report/TextTable.ts"
import { processSecrets } from "../privacy/KnownSecrets.ts"

type Signal = "SIGINT" | "SIGTERM" | "SIGHUP"
const signalCodes: Readonly<Record<Signal, number>> = {
  SIGINT: exitCodes.interrupted,
  SIGTERM: exitCodes.terminated,
  SIGHUP: 129,
}

/**
 * How long a process may take after a signal: waits end at once, a start that was sent gets its answer, and
 * a publication finishes its last step. Whatever is still running then is cut off, as by a crash.
 */
const stopWithin = Duration.seconds(20)

/** How a program ended, for the process around it. */
const endingOfExit = <A, E>(exit: Exit.Exit<A, E>): Ending => {
  if (Exit.isSuccess(exit)) return { exit_code: exitCodes.ok, lines: [] }
  if (Cause.hasInterruptsOnly(exit.cause)) return { exit_code: exitCodes.interrupted, lines: [] }
  return endingOfCause(exit.cause)
}

/** The flag is parsed inside the program, which may have ended before it was. */
const asksForStacks = (args: ReadonlyArray<string>): boolean =>
  /(?:^| )--log-level[= ](?:debug|trace|all)(?: |$)/.test(args.join(" "))

/** A write into a closed pipe must not end a run; it concerns the writer, not the process. */
const ignoreClosedPipes = (): void => {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined)
}

const quit = (exit_code: number): void => {
  const { lines } = endingFor("stop-forced", { seconds: Duration.toSeconds(stopWithin) })
  process.stderr.write(`${lines.join("\n")}\n`)
  process.exit(exit_code)
}

/**
 * What is left to print when a program is over: its ending, unless a signal ended it, and a stack trace on
 * request. An error may quote anything: its input, an answer, a destination.
 */
export const lastWordsOf = <A, E>(
  exit: Exit.Exit<A, E>,
  { isSignalled, withStack }: { readonly isSignalled: boolean; readonly withStack: boolean },
): string => {
  const { lines } = isSignalled ? { lines: [] } : endingOfExit(exit)
  const stack = Exit.isFailure(exit) && withStack ? [Cause.pretty(exit.cause)] : []
  return processSecrets.clean([...lines, ...stack].map((line) => `${line}\n`).join(""), "own")
}

/** Without a listener, SIGUSR1 opens Node's debugger in a process that holds every password. */
const refuseDebugger = (): void => void process.on("SIGUSR1", () => undefined)

/** Runs the program to its end and exits with the program's exit code. */
export const runProcess = (program: Effect.Effect<void, Failure | CliError.CliError>): void => {
  ignoreClosedPipes()
  refuseDebugger()
  let signalled: Signal | undefined
  Runtime.makeRunMain(({ fiber }) => {
    const stop = (signal: Signal) => {
      if (signalled !== undefined) {
        if (signal === "SIGINT") process.exit(exitCodes.interrupted)
        return
      }
      signalled = signal
      Effect.runFork(Fiber.interrupt(fiber))
      Effect.runFork(
        Effect.andThen(
          Effect.sleep(stopWithin),
          Effect.sync(() => quit(signalCodes[signal])),
        ),
      )
    }
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => stop(signal))
    fiber.addObserver((exit) => {
      const isSignalled = signalled !== undefined
      const words = lastWordsOf(exit, { isSignalled, withStack: asksForStacks(process.argv) })
      process.stderr.write(process.stderr.isTTY ? forTerminal(words, false) : words)
      process.exit(signalled === undefined ? endingOfExit(exit).exit_code : signalCodes[signalled])
    })
  })(program, { disableErrorReporting: true })
}
