/**
 * A command on an output folder in a real process that is killed with SIGKILL, also within its own system calls: at
 * each kill the published database is whole, and the same command finishes its work as if nothing had happened.
 */
import { cpSync, rmSync } from "node:fs"
import { join } from "node:path"
import { seeded } from "../../src/sandbox/state/Reading.ts"
import { callsIn, tellEnd, tracing, type Campaign } from "./Campaign.ts"
import { awaitMoment, countFacts, deadlyPrefix, describe, hasStrace, type Moment } from "./KillMoments.ts"
import type { ProcessEnd, RunningProcess } from "./NightjarCommand.ts"
import { brokenDatabase, type Tables } from "./PublishedTables.ts"
import type { Verdict } from "./Verdict.ts"

const redrawsMax = 5

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
export const killCommand = async (command: KilledCommand, seed: number): Promise<Verdict> => {
  for (let redrawn = 0; ; redrawn += 1) {
    const moments = drawMoments(seed, redrawn, command)
    const { kills, ...verdict } = await killedAt(command, `${command.kind} ${seed}`, moments)
    if (kills > 0 || redrawn === redrawsMax || verdict.complaints.length > 0) return verdict
  }
}

const killedAt = async (command: KilledCommand, name: string, moments: ReadonlyArray<Moment>) => {
  const { place, start, isFinished, judge } = command
  const output = copyOf(place, name.replace(" ", "-"))
  const story: Array<string> = []
  const complaints: Array<string> = []
  let end: ProcessEnd | undefined
  for (const moment of moments) {
    const running = start(output, deadlyPrefix(moment))
    await awaitMoment(moment, running, output, countFacts(output))
    running.kill()
    end = await running.ended
    // strace ends as the process that it watched did, or with the shell's number for it.
    if (end.code !== null && end.code !== 137) break
    story.push(describe(moment))
    complaints.push(...(await brokenDatabase(output)).map((what) => `killed ${describe(moment)}: ${what}`))
    end = undefined
  }
  end ??= await start(output).ended
  if (!isFinished(end, output)) complaints.push(`it ended with ${tellEnd(end)}`)
  complaints.push(...(await judge(output)))
  if (complaints.length === 0) rmSync(output, { recursive: true, force: true })
  const told = `${command.about}, killed ${story.join(", ") || "never"}`
  return { name, story: told, complaints, kills: story.length }
}

export type Lines = ReadonlyMap<string, ReadonlyArray<string>>

/** The rows of every table, in no order. */
export const linesOf = (tables: Tables): Lines =>
  new Map([...tables].map(([name, { rows }]) => [name, rows.map((row) => JSON.stringify(row)).toSorted()]))

export const otherTables = (one: Lines, other: Lines): ReadonlyArray<string> =>
  [...new Set([...one.keys(), ...other.keys()])].filter(
    (name) => JSON.stringify(one.get(name)) !== JSON.stringify(other.get(name)),
  )
