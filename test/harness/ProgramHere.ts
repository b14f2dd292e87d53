/**
 * The whole program in this process: the live wiring, command line, environment, streams and exit code of a process of
 * its own, without its start, which costs more than most commands. What is about a process (signals, locks, memory,
 * closed streams) starts a real one.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import {
  Cause,
  ConfigProvider,
  Console,
  Effect,
  Exit,
  Fiber,
  Layer,
  Logger,
  PlatformError,
  Sink,
  Stdio,
  Stream,
} from "effect"
import { endingOfCause } from "../../src/cli/Failures.ts"
import { NightjarFlags, Presenter, runNightjar } from "../../src/cli/Nightjar.ts"
import { Output, Settings } from "../../src/cli/Output.ts"
import { Wiring } from "../../src/cli/Wiring.ts"
import { wiring } from "../../src/main.ts"
import { KnownSecrets, makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"
import { FormChecking } from "../../src/client/FormProcess.ts"
import { FormCheckerInProcess } from "./FormCheckerInProcess.ts"

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly ended: Promise<Ended>
  /** What it said first on stdout, or everything if it ended without a whole line. */
  readonly firstLine: Promise<string>
  readonly kill: (signal: NodeJS.Signals) => void
}

export interface Surroundings {
  /** All of it: the variables of this process are not seen. */
  readonly environment?: Readonly<Record<string, string>>
  readonly stdin?: string
  /** Arguments name files from here: a thread has no working directory of its own. */
  readonly folder?: string
  /** Whether the streams name its files as the arguments did, and not by their whole paths. */
  readonly tellsFromFolder?: boolean
  /** There is no room for anything that goes to stdout. */
  readonly isFull?: boolean
  /** Called with all of stderr whenever there is more. */
  readonly onStderr?: (all: string) => void
}

const noRoom = PlatformError.systemError({
  module: "Stdio",
  method: "stdout",
  _tag: "Unknown",
  cause: Object.assign(new Error("no room"), { code: "ENOSPC" }),
})

const beforePaths = new Set(["--output", "backup"])
const isPath = /^[\w./-]+\.(?:csv|json|md|parquet|txt|yaml)$/
const inFolder = (folder: string, args: ReadonlyArray<string>): ReadonlyArray<string> =>
  args.map((arg, index) => {
    const isNamed =
      beforePaths.has(args[index - 1] ?? "") || isPath.test(arg) || existsSync(join(folder, arg))
    return isNamed && arg !== "" && !arg.startsWith("/") ? join(folder, arg) : arg
  })

export const startHere = (
  args: ReadonlyArray<string>,
  {
    environment = {},
    stdin = "",
    folder,
    tellsFromFolder = true,
    isFull = false,
    onStderr,
  }: Surroundings = {},
): Running => {
  const left = folder === undefined || !tellsFromFolder ? undefined : `${folder}/`
  const said = { stdout: "", stderr: "" }
  const first = Promise.withResolvers<string>()
  const hear = (stream: keyof typeof said, text: string) => {
    said[stream] += left === undefined ? text : text.replaceAll(left, "")
    if (stream === "stderr") onStderr?.(said.stderr)
    else if (said.stdout.includes("\n")) first.resolve(said.stdout.split("\n", 1)[0] ?? "")
  }
  const into = (stream: keyof typeof said) => () =>
    Sink.forEach((chunk: string | Uint8Array) =>
      Effect.sync(() => hear(stream, typeof chunk === "string" ? chunk : Buffer.from(chunk).toString())),
    )
  const secrets = makeKnownSecrets()
  const log = Logger.make((entry) =>
    hear("stderr", `${secrets.clean(Logger.formatLogFmt.log(entry), "own")}\n`),
  )
  const services = Layer.mergeAll(
    Layer.succeed(Wiring, wiring),
    Presenter.layer,
    NightjarFlags.layer,
    Logger.layer([log]),
    Output.layer(true).pipe(Layer.provideMerge(Settings.layer)),
  ).pipe(
    Layer.provideMerge(
      Stdio.layerTest({
        stdout: isFull ? () => Sink.fail(noRoom) : into("stdout"),
        stderr: into("stderr"),
        stdin: Stream.make(Buffer.from(stdin)),
      }),
    ),
    Layer.provideMerge(NodeServices.layer),
  )
  const fiber = Effect.runFork(
    runNightjar(folder === undefined ? args : inFolder(folder, args)).pipe(
      Effect.provide(services),
      Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnvRecord(environment)),
      Effect.provideService(KnownSecrets, secrets),
      Effect.provideService(Console.Console, {
        ...globalThis.console,
        log: (text: string) => hear("stdout", `${text}\n`),
        error: (text: string) => hear("stderr", `${text}\n`),
      }),
      Effect.provideService(FormChecking, FormCheckerInProcess.layer),
    ),
  )
  let signalled: NodeJS.Signals | undefined
  const ended = new Promise<Ended>((resolve) => {
    fiber.addObserver((exit) => {
      const ending = Exit.isSuccess(exit)
        ? { exit_code: 0, lines: [] }
        : Cause.hasInterruptsOnly(exit.cause)
          ? { exit_code: 130, lines: [] }
          : endingOfCause(exit.cause)
      const lines = signalled === undefined ? ending.lines : []
      hear("stderr", secrets.clean(lines.map((line) => `${line}\n`).join(""), "own"))
      first.resolve(said.stdout)
      resolve({ code: signalled === "SIGTERM" ? 143 : ending.exit_code, ...said })
    })
  })
  const kill = (signal: NodeJS.Signals) => {
    signalled ??= signal
    Effect.runFork(Fiber.interrupt(fiber))
  }
  return { ended, firstLine: first.promise, kill }
}
