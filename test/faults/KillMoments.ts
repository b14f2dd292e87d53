/**
 * When a pipeline is killed: moments drawn from a seed over its whole life, some by the clock, some aimed with the
 * ledger (so many facts are written), with files (something of a publication is there), or, where strace is to be
 * had, with the very system call.
 */
import { spawnSync } from "node:child_process"
import { existsSync, statSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { setTimeout as wait } from "node:timers/promises"
import { seeded } from "../../src/sandbox/state/Reading.ts"
import type { RunningProcess } from "./NightjarCommand.ts"

export type Moment =
  | { readonly _tag: "Elapsed"; readonly ms: number }
  /** Facts of this night in the ledger, and so much later. */
  | { readonly _tag: "Facts"; readonly count: number; readonly laterMs: number }
  /** A version was published while the night goes on. */
  | { readonly _tag: "Interim"; readonly laterMs: number }
  | { readonly _tag: "File"; readonly path: string; readonly laterMs: number }
  | { readonly _tag: "SystemCall"; readonly name: string; readonly nth: number }

/** What an undisturbed night is like, so that moments fall into its life. */
export interface Life {
  readonly elapsedMs: number
  readonly facts: number
  /** How often each system call is made; empty where strace is not to be had. */
  readonly systemCalls: ReadonlyMap<string, number>
}

export const hasStrace = spawnSync("strace", ["-V"], { stdio: "ignore" }).status === 0

/** Calls after which a disk holds something else than before. */
export const diskCalls = ["fsync", "fdatasync", "rename", "unlink", "pwrite64", "write", "ftruncate"] as const

/** Told by their appearance or change: the steps of a publication, documents, the lock, the summary. */
const watchedFiles = [
  "run.lock",
  "nightjar.duckdb.build",
  "nightjar.duckdb.build.wal",
  "tables/manifest.next.json.tmp",
  "tables/manifest.next.json",
  "published/previous",
  "nightjar.duckdb",
  "tables/manifest.json",
  "attachments",
  "runs",
] as const

export const describe = (moment: Moment): string => {
  switch (moment._tag) {
    case "Elapsed":
      return `after ${moment.ms} ms`
    case "Facts":
      return `${moment.laterMs} ms after fact ${moment.count}`
    case "Interim":
      return `${moment.laterMs} ms after a version was published while it went on`
    case "File":
      return `${moment.laterMs} ms after a change of ${moment.path}`
    case "SystemCall":
      return `at ${moment.name} number ${moment.nth}`
  }
}

/**
 * One to four moments, or as many as are asked for; the same seed draws the same. What is taken up again lives
 * shorter than the first time.
 */
export const drawMoments = (
  seed: number,
  redrawn: number,
  life: Life,
  inARow: number | undefined,
): ReadonlyArray<Moment> => {
  const draw = seeded("kills", seed, redrawn)
  const drawn = draw.int(1, 4)
  return Array.from({ length: inARow ?? drawn }, (_, index) =>
    drawMoment(draw, {
      // The more kills there are to be, the sooner each has to come.
      elapsedMs: inARow === undefined ? life.elapsedMs : life.elapsedMs / (index + 1),
      facts: Math.ceil(life.facts / (index + 1)),
      systemCalls: new Map(
        [...life.systemCalls].map(([name, calls]) => [name, Math.ceil(calls / (index + 1))]),
      ),
    }),
  )
}

const drawMoment = (draw: ReturnType<typeof seeded>, life: Life): Moment => {
  const calls = [...life.systemCalls]
  const kind = draw.unit() * (calls.length === 0 ? 0.6 : 1)
  if (kind < 0.08) return { _tag: "Interim", laterMs: draw.chance(0.5) ? 0 : draw.int(1, 2_000) }
  if (kind < 0.2) return { _tag: "Elapsed", ms: draw.int(0, Math.round(life.elapsedMs)) }
  if (kind < 0.4)
    return { _tag: "Facts", count: draw.int(1, life.facts), laterMs: draw.chance(0.5) ? 0 : draw.int(1, 20) }
  if (kind < 0.6)
    return { _tag: "File", path: draw.pick(watchedFiles), laterMs: draw.chance(0.3) ? 0 : draw.int(1, 120) }
  const [name, count] = calls[draw.int(0, calls.length - 1)] ?? ["fsync", 1]
  return { _tag: "SystemCall", name, nth: draw.int(1, count) }
}

const lookEveryMs = 2

/** Answers once the moment has come, or the process is over. */
export const awaitMoment = async (
  moment: Moment,
  running: RunningProcess,
  output: string,
  factsBefore: number,
): Promise<void> => {
  if (moment._tag === "SystemCall") return void (await running.ended)
  if (moment._tag === "Elapsed") return void (await Promise.race([running.ended, wait(moment.ms)]))
  const hasCome = comes(moment, output, factsBefore)
  while (running.isAlive() && !hasCome()) await wait(lookEveryMs)
  await Promise.race([running.ended, wait(moment.laterMs)])
}

const comes = (
  moment: Exclude<Moment, { _tag: "Elapsed" | "SystemCall" }>,
  output: string,
  factsBefore: number,
): (() => boolean) => {
  switch (moment._tag) {
    case "Facts":
      return reached(output, factsBefore + moment.count, "true")
    case "Interim":
      return reached(output, factsBefore + 1, "tag = 'InterimPublished'")
    case "File":
      return changeOf(join(output, moment.path))
  }
}

const changeOf = (path: string) => {
  const stamp = () => (existsSync(path) ? (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) : 0)
  const before = stamp()
  return () => stamp() !== before
}

export const countFacts = (output: string): number => newestFact(output, "true")

const newestFact = (output: string, which: string): number => {
  const path = join(output, "ledger.sqlite")
  if (!existsSync(path)) return 0
  const ledger = new DatabaseSync(path, { readOnly: true, timeout: 10_000 })
  try {
    return Number(ledger.prepare(`SELECT coalesce(max(seq), 0) AS n FROM facts WHERE ${which}`).get()?.["n"])
  } finally {
    ledger.close()
  }
}

const reached = (output: string, seq: number, which: string) => () => {
  try {
    return newestFact(output, which) >= seq
  } catch {
    // The pipeline is making the file, or recovering it.
    return false
  }
}

/** The command line that dies at a system call, in front of the pipeline's own. */
export const deadlyPrefix = (moment: Moment): ReadonlyArray<string> =>
  moment._tag === "SystemCall" ? injecting(moment.name, `signal=KILL:when=${moment.nth}`) : []

/**
 * strace around a command, quiet but for what it injects. A filter in the kernel spares the other calls their stop,
 * but with it a signal alone is never sent.
 */
export const injecting = (
  name: string,
  injection: string,
  paths: ReadonlyArray<string> = [],
): ReadonlyArray<string> => [
  "strace",
  "-f",
  "-qqq",
  ...(injection.startsWith("signal") || paths.length > 0 ? [] : ["--seccomp-bpf"]),
  ...paths.flatMap((path) => ["-P", path]),
  "-o",
  "/dev/null",
  "-e",
  `trace=${name}`,
  "-e",
  `inject=${name}:${injection}`,
]
