/**
 * Secrets, resolved only when they are needed: from the environment, a file or a command's output. A value is
 * redacted immediately, and an error names the reference, never the value, the command or what it printed.
 */
import { Context, Duration, Effect, Layer, Redacted, Schema, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { inMachineTime, limited } from "../base/Time.ts"
import { withoutEnd } from "../service/BodyBounds.ts"
import { KnownSecrets } from "../privacy/KnownSecrets.ts"
import { openToOthers, readEnvFile, readProcess, type EnvFile } from "./EnvFile.ts"
import { lostBytes } from "./Problem.ts"
import { commandVariables, describeReference, namedIn, type SecretReference } from "./Scalars.ts"
import { readTextFile, readWithin } from "../base/DurableFile.ts"

/** A reference that leads nowhere; `reference` is safe to show. */
export class SecretUnavailable extends Schema.TaggedError<SecretUnavailable>()("SecretUnavailable", {
  reference: Schema.String,
  reason: Schema.String,
}) {
  override get message(): string {
    return `${this.reference}: ${this.reason}`
  }
}

const commandTime = Duration.seconds(30)
/** No password, key or certificate is longer. */
const bytesMax = 65_536

type Resolve = (reference: SecretReference) => Effect.Effect<Redacted.Redacted<string>, SecretUnavailable>

const tooLong = `it is longer than ${bytesMax} bytes`

/** Each file of variables is read once: a job may name thousands of its variables. */
const makeFromFile = () => {
  const files = new Map<string, EnvFile>()
  return Effect.fnUntraced(function* (path: string, name: string) {
    const file = files.get(path) ?? (yield* readEnvFile(path))
    if (file.openMode !== undefined) return yield* Effect.fail(openToOthers(path, file.openMode))
    files.set(path, file)
    const fault = file.faults.get(name)
    if (fault !== undefined) return yield* Effect.fail(`line ${fault.line}: ${fault.message}`)
    return file.variables.get(name)
  })
}

const makeFromEnvironment = (fromFile: ReturnType<typeof makeFromFile>) =>
  Effect.fnUntraced(function* ({ name, file }: Extract<SecretReference, { _tag: "Env" }>) {
    const own = (yield* readProcess([name])).get(name)
    if (own !== undefined) return own
    const absent = "the environment has no such variable, or an empty one"
    if (file === undefined) return yield* Effect.fail(absent)
    const value = yield* fromFile(file, name).pipe(Effect.mapError((reason) => `${file}: ${reason}`))
    return value ?? (yield* Effect.fail(`${absent}, and ${file} has none either`))
  })

/** Returns what it printed. The command sees no secret of this process but those that it names. */
export const runCommand = Effect.fnUntraced(function* (
  [program = "", ...args]: ReadonlyArray<string>,
  options: Pick<ChildProcess.CommandOptions, "stdin" | "stdout">,
) {
  const names = [...commandVariables, ...[program, ...args].flatMap(namedIn)]
  const env = Object.fromEntries(yield* readProcess(new Set(names)))
  const { spawn } = yield* ChildProcessSpawner.ChildProcessSpawner
  const own = { ...options, env, stderr: "ignore", forceKillAfter: "1 second" } as const
  const handle = yield* spawn(ChildProcess.make(program, args, own)).pipe(
    Effect.mapError(() => "the command cannot be started"),
  )
  const stdout = Stream.mapError(handle.stdout, () => "the command's output cannot be read")
  const output = yield* readWithin(stdout, bytesMax, tooLong)
  const code = yield* handle.exitCode.pipe(Effect.mapError(() => "the command was killed"))
  return code === 0 ? output.toString("utf8") : yield* Effect.fail(`the command ended with exit code ${code}`)
}, Effect.scoped)

/** Editors and commands end a text with a line break that is no part of a password; blanks may be. */
const withoutLineEnd = (text: string): string => withoutEnd(text, "\r\n")

const makeResolve = (spawner: ChildProcessSpawner.ChildProcessSpawner["Service"]): Resolve => {
  const fromEnvironment = makeFromEnvironment(makeFromFile())
  const read = (reference: SecretReference): Effect.Effect<string, string> => {
    switch (reference._tag) {
      case "Env":
        return fromEnvironment(reference)
      case "File":
        return readTextFile(reference.path, bytesMax).pipe(
          Effect.mapError((reason) => `it cannot be read (${reason})`),
          Effect.map(withoutLineEnd),
        )
      case "Exec":
        return runCommand(["sh", "-c", reference.command], { stdin: "ignore" }).pipe(
          Effect.map(withoutLineEnd),
          Effect.provideService(ChildProcessSpawner.ChildProcessSpawner, spawner),
          limited({
            duration: commandTime,
            orElse: () =>
              Effect.fail(`the command did not end within ${Duration.toSeconds(commandTime)} seconds`),
          }),
          inMachineTime,
        )
    }
  }
  return Effect.fn("Secrets.resolve")(function* (reference: SecretReference) {
    const unavailable = (reason: string) =>
      new SecretUnavailable({ reference: describeReference(reference), reason })
    const value = yield* read(reference).pipe(Effect.mapError(unavailable))
    const fault = value === "" ? "it is empty" : lostBytes(value)
    if (fault !== undefined) return yield* unavailable(fault)
    // Before anybody can repeat it.
    ;(yield* KnownSecrets).hold(value, "password")
    return Redacted.make(value)
  })
}

export class Secrets extends Context.Service<
  Secrets,
  {
    /** Resolves again each time; callers that need a value twice in a run keep it. */
    readonly resolve: Resolve
  }
>()("nightjar/jobs/Secrets") {
  static readonly layer = Layer.effect(
    Secrets,
    Effect.gen(function* () {
      const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
      return Secrets.of({ resolve: makeResolve(spawner) })
    }),
  )
}

export const resolveReference = (reference: SecretReference) =>
  Effect.flatMap(Secrets, (secrets) => secrets.resolve(reference))
