/**
 * A command on an output folder in a real process that is killed with SIGKILL, also within its own system calls: at
 * each kill the published database is whole, and the same command finishes its work as if nothing had happened.
 */
import { cpSync, rmSync } from "node:fs"
import { join } from "node:path"
import { seeded } from "../../src/sandbox/state/Reading.ts"
import { callsIn, tellEnd, tracing, type Campaign } from "./Campaign.ts"
import { killAgain, killAt } from "./KilledProcess.ts"
import { hasStrace, type Moment } from "./KillMoments.ts"
import type { ProcessEnd, RunningProcess } from "./NightjarCommand.ts"
import { brokenDatabase } from "./PublishedTables.ts"
import type { Verdict } from "./Verdict.ts"

export interface Place {
  readonly campaign: Campaign
  /** The output folder that the command is given. */
  readonly template: string
  /** Where its copies are made. */
  readonly folder: string
}

export interface KilledCommand {
  readonly place: Place
  /** In the names of the cases, and of their seeds. */
  readonly kind: string
  /** What is told of a case before its kills. */
  readonly about: string
  readonly start: (output: string, prefix?: ReadonlyArray<string>) => RunningProcess
  /** What the command changes, in its order. */
  readonly watchedFiles: readonly [string, ...ReadonlyArray<string>]
  /** How long an undisturbed command takes, and how often it makes each call. */
  readonly elapsedMs: number
  readonly calls: ReadonlyMap<string, number>
  /** Killed after its last step, it may have nothing left to do. */
  readonly isFinished: (end: ProcessEnd, output: string) => boolean
  readonly judge: (output: string) => Promise<ReadonlyArray<string>>
}

export const copyOf = ({ template, folder }: Place, name: string): string => {
  const output = join(folder, name)
  rmSync(output, { recursive: true, force: true })
  cpSync(template, output, { recursive: true })
  return output
}

/** How often a command makes each call; nothing where strace is not to be had. */
export const countCalls = async (
  place: Place,
  name: string,
  start: KilledCommand["start"],
): Promise<KilledCommand["calls"]> => {
  if (!hasStrace || !place.campaign.aimAtCalls) return new Map()
  const output = copyOf(place, `calls-${name}`)
  const log = `${output}.log`
  await start(output, tracing(log)).ended
  rmSync(output, { recursive: true, force: true })
  return callsIn(log)
}

const drawMoments = (
  seed: number,
  redrawn: number,
  { kind, elapsedMs, calls, watchedFiles }: KilledCommand,
): ReadonlyArray<Moment> => {
  const draw = seeded(`${kind}s`, seed, redrawn)
  return Array.from({ length: draw.int(1, 2) }, (): Moment => {
    const which = draw.unit() * (calls.size === 0 ? 0.5 : 1)
    if (which < 0.2) return { _tag: "Elapsed", ms: draw.int(0, Math.round(elapsedMs)) }
    if (which < 0.5)
      return { _tag: "File", path: draw.pick(watchedFiles), laterMs: draw.chance(0.3) ? 0 : draw.int(1, 60) }
    const [name, count] = [...calls][draw.int(0, calls.size - 1)] ?? ["fsync", 1]
    return { _tag: "SystemCall", name, nth: draw.int(1, count) }
  })
}

/** Moments that all came too late are drawn again. */
export const killCommand = (command: KilledCommand, seed: number): Promise<Verdict> =>
  killAgain(async (redrawn) => {
    const name = `${command.kind} ${seed}`
    const output = copyOf(command.place, name.replace(" ", "-"))
    const { story, complaints, kills, end } = await killAt(drawMoments(seed, redrawn, command), {
      output,
      start: (prefix) => command.start(output, prefix),
      judgeKill: () => brokenDatabase(output),
    })
    if (!command.isFinished(end, output)) complaints.push(`it ended with ${tellEnd(end)}`)
    complaints.push(...(await command.judge(output)))
    if (complaints.length === 0) rmSync(output, { recursive: true, force: true })
    return { name, story: `${command.about}, ${story()}`, complaints, kills }
  })
