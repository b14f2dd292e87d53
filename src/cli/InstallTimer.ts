/**
 * Installs a timer for the current user: systemd units or lines of the crontab. Replaces only what this
 * program wrote, and says how to undo it. Every command that it runs has thirty seconds.
 */
import { isUtf8 } from "node:buffer"
import { existsSync, readFileSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { Duration, Effect, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { codeOf, durableFiles } from "../base/DurableFile.ts"
import { mark, timerName, timerUnit, withBlock } from "./Timers.ts"
import type { Timer, TimerFile } from "./Timers.ts"
import { refuse } from "./Failures.ts"
import { say } from "./Output.ts"

const commandTime = Duration.seconds(30)
/** No crontab that a person reads is longer. */
const bytesMax = 1_000_000

const unstarted = (): string => "it cannot be started"

interface Called {
  readonly exit_code: number
  readonly stdout: string
  readonly stderr: string
}

/** Fails rather than lose a byte: what was read of a crontab is written back. */
const readAll = <E>(stream: Stream.Stream<Uint8Array, E>) =>
  stream.pipe(
    Stream.mapError(() => "it cannot be read"),
    Stream.runFoldEffect(
      () => Buffer.alloc(0),
      (read, piece) =>
        read.length + piece.length > bytesMax
          ? Effect.fail(`it prints more than ${bytesMax} bytes`)
          : Effect.succeed(Buffer.concat([read, piece])),
    ),
  )

/** Fails with a reason if the command cannot be started or does not end. */
const call = (
  command: string,
  args: ReadonlyArray<string>,
  input = "",
): Effect.Effect<Called, string, ChildProcessSpawner.ChildProcessSpawner> =>
  Effect.gen(function* () {
    const { spawn } = yield* ChildProcessSpawner.ChildProcessSpawner
    const stdin = Stream.make(new TextEncoder().encode(input))
    const child = ChildProcess.make(command, [...args], { stdin, forceKillAfter: "1 second" })
    const handle = yield* Effect.mapError(spawn(child), unstarted)
    const [out, err, exit_code] = yield* Effect.all(
      [readAll(handle.stdout), readAll(handle.stderr), Effect.mapError(handle.exitCode, unstarted)],
      { concurrency: "unbounded" },
    )
    if (!isUtf8(out)) return yield* Effect.fail("it prints what is not UTF-8")
    return { exit_code, stdout: out.toString("utf8"), stderr: err.toString("utf8") }
  }).pipe(
    Effect.scoped,
    Effect.timeoutOrElse({
      duration: commandTime,
      orElse: () => Effect.fail(`it did not end within ${Duration.toSeconds(commandTime)} seconds`),
    }),
  )

const whyOf = ({ exit_code, stderr }: Called): string => {
  const said = stderr.trim().split("\n", 1)[0] ?? ""
  return said === "" ? `exit code ${exit_code}` : `exit code ${exit_code}: ${said}`
}

/** The home folder of this user, and where systemd looks for the units of a user. */
export const userFolders = (
  environment: NodeJS.ProcessEnv,
): { readonly home: string; readonly units: string } => {
  const home = homedir()
  const config = environment["XDG_CONFIG_HOME"] ?? ""
  return { home, units: join(config === "" ? join(home, ".config") : config, "systemd/user") }
}

const isOurs = (path: string): boolean =>
  !existsSync(path) || readFileSync(path, "utf8").startsWith(`${mark}\n`)

export const installUnits = Effect.fnUntraced(function* (
  timer: Timer,
  files: ReadonlyArray<TimerFile>,
  folder: string,
) {
  const written = files.map(({ name, text }) => ({ path: join(folder, name), text }))
  const foreign = written.find(({ path }) => !isOurs(path))
  if (foreign !== undefined) return yield* refuse("timer-not-ours", { path: foreign.path })
  const durable = yield* durableFiles
  yield* Effect.try({
    try: () => {
      durable.makeFolder(folder, 0o700)
      for (const { path, text } of written) durable.replace(path, text, 0o600)
    },
    catch: (cause) => refuse("timer-unwritable", { path: folder, why: codeOf(cause) }),
  })
  yield* say(["Written:", ...written.map(({ path }) => `  ${path}`)].join("\n"))
  const unit = timerUnit(timer)
  for (const args of [["daemon-reload"], ["enable", "--now", unit]]) {
    const command = ["systemctl", "--user", ...args].join(" ")
    const failed = (why: string) => refuse("timer-not-enabled", { command, why })
    const called = yield* call("systemctl", ["--user", ...args]).pipe(Effect.mapError(failed))
    if (called.exit_code !== 0) return yield* failed(whyOf(called))
  }
  yield* say(
    [
      `${unit} is enabled. It runs while you are logged out only after \`loginctl enable-linger\`.`,
      `To undo: systemctl --user disable --now ${unit}, then delete the files above.`,
    ].join("\n"),
  )
})

export const installLines = Effect.fnUntraced(function* (timer: Timer, block: string) {
  const failed = (command: string) => (why: string) => refuse("crontab-unusable", { command, why })
  const list = "crontab -l"
  const found = yield* call("crontab", ["-l"]).pipe(Effect.mapError(failed(list)))
  // A user who has no crontab yet.
  const isNone = found.exit_code !== 0 && /no crontab/i.test(found.stderr)
  if (found.exit_code !== 0 && !isNone) return yield* failed(list)(whyOf(found))
  const name = timerName(timer)
  const crontab = withBlock(isNone ? "" : found.stdout, name, block)
  if (crontab === undefined) return yield* refuse("timer-lines-damaged", { name })
  const set = "crontab -"
  const called = yield* call("crontab", ["-"], crontab).pipe(Effect.mapError(failed(set)))
  if (called.exit_code !== 0) return yield* failed(set)(whyOf(called))
  yield* say(
    `The crontab now has the lines of ${name}:\n${block}` + "To undo: crontab -e, then delete these lines.",
  )
})
