/**
 * Commands that look at an output folder or mend it, in this process: the same command line and rooms as the program,
 * without the start of a process for each call. Commands that need the service are not wired.
 */
import { fileURLToPath } from "node:url"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Exit, Layer, Sink, Stdio } from "effect"
import { endingOfCause } from "../../src/cli/Failures.ts"
import { NightjarFlags, Presenter, runNightjar } from "../../src/cli/Nightjar.ts"
import { Output, Settings } from "../../src/cli/Output.ts"
import { Wiring } from "../../src/cli/Wiring.ts"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { LandingFiles } from "../../src/landing/LandingFiles.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { KnownSecrets, makeKnownSecrets, processSecrets } from "../../src/privacy/KnownSecrets.ts"

const recordSchemas = fileURLToPath(new URL("../../schemas/records", import.meta.url))

const wired = {
  ledger: (output: string, access: "read-only" | "read-write") =>
    Ledger.layer({ path: `${output}/ledger.sqlite`, readOnly: access === "read-only" }),
  landing: (root: string, access: "read-only" | "read-write") => LandingFiles.layer({ root, access }),
  database: DuckDb.layer,
  recordSchemas,
}

export interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** What work of the command line prints, and the exit code that it ends with. */
export const worksHere = <A, E, R>(work: Effect.Effect<A, E, R>, more: Partial<Wiring["Service"]> = {}) =>
  Effect.gen(function* () {
    const said = { stdout: "", stderr: "" }
    const into = (stream: keyof typeof said) => () =>
      Sink.forEach((chunk: string | Uint8Array) =>
        Effect.sync(() => {
          said[stream] += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString()
        }),
      )
    const services = Layer.mergeAll(
      Layer.succeed(Wiring, { ...wired, ...more } as unknown as Wiring["Service"]),
      Presenter.layer,
      NightjarFlags.layer,
      Output.layer(true).pipe(Layer.provideMerge(Settings.layer)),
    ).pipe(
      Layer.provideMerge(Stdio.layerTest({ stdout: into("stdout"), stderr: into("stderr") })),
      Layer.provideMerge(NodeServices.layer),
    )
    // As in a process of its own: secrets that an earlier test resolved are no secrets here.
    const known = yield* KnownSecrets
    const secrets = known === processSecrets ? makeKnownSecrets() : known
    const exit = yield* Effect.exit(
      Effect.provideService(Effect.provide(work, services), KnownSecrets, secrets),
    )
    const ending = Exit.isSuccess(exit) ? { exit_code: 0, lines: [] } : endingOfCause(exit.cause)
    return {
      code: ending.exit_code,
      stdout: said.stdout,
      stderr: [said.stderr, ...ending.lines].filter((line) => line !== "").join("\n"),
    }
  })

/** A command line as work of that kind. */
export const commandWork = (args: ReadonlyArray<string>, more?: Partial<Wiring["Service"]>) =>
  worksHere(runNightjar(args), more)

/** The same, with a service for the command that asks one. */
export const commandAt = (
  tokens: Wiring["Service"]["tokens"],
  ...args: ReadonlyArray<string>
): Promise<Ended> => Effect.runPromise(commandWork(args, { tokens }))

/** A command with these arguments. */
export const commandHere = (...args: ReadonlyArray<string>): Promise<Ended> =>
  Effect.runPromise(commandWork(args))
