/**
 * What all campaigns share: the command, a folder for everything, an output folder that holds the night of another
 * job already, and the undisturbed night that disturbed ones are compared with.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { earlierText, nightJob, nightText, type Pace } from "./FaultJobs.ts"
import { countFacts, diskCalls, hasStrace, type Life } from "./KillMoments.ts"
import { brokenPromises, factsOf, orphanedTasks } from "./NightChecks.ts"
import { installCommand, startProcess, type ProcessEnd, type RunningProcess } from "./NightjarCommand.ts"
import { filesBelow, layoutOf } from "../../src/tables/Manifest.ts"
import { leftovers, parquetDifferences, readAllTables, readTables, type Tables } from "./PublishedTables.ts"
import { differingDatabases, differingTables } from "./SameTables.ts"
import { startService, type ServiceProcess } from "./ServiceProcess.ts"

/** What became of one case of a campaign: wrong where there is a complaint. */
export interface Verdict {
  readonly name: string
  readonly story: string
  readonly complaints: ReadonlyArray<string>
}

export interface Undisturbed {
  readonly tables: Tables
  readonly exit_code: number
  readonly life: Life
  /** What its output folder takes of a disk, in blocks. */
  readonly blocks: number
  /** That folder, to be copied. */
  readonly output: string
}

export interface Campaign {
  readonly command: string
  readonly folder: string
  readonly template: string
  /** Kills are aimed at system calls too, where strace is to be had. */
  readonly aimAtCalls: boolean
  readonly undisturbed: (pace: Pace) => Promise<Undisturbed>
}

export const blockBytes = 4_096
/** What a folder takes of a disk: whole blocks of its files. */
export const blocksOf = (folder: string): number =>
  filesBelow(folder).reduce((sum, path) => sum + Math.ceil(statSync(join(folder, path)).size / blockBytes), 0)

/** A disturbed night's own places. */
export interface Stage {
  readonly campaign: Campaign
  readonly folder: string
  readonly output: string
  readonly job: string
  readonly service: ServiceProcess
}

export const nightjar = (
  { command }: Pick<Campaign, "command">,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>>,
  prefix: ReadonlyArray<string> = [],
): RunningProcess => {
  const [file = process.execPath, ...rest] = [...prefix, process.execPath, command, ...args]
  return startProcess([file, ...rest], env)
}

export const runNight = (stage: Stage, prefix: ReadonlyArray<string> = []): RunningProcess =>
  nightjar(
    stage.campaign,
    ["run", stage.job, "--output", stage.output, "--no-progress"],
    stage.service.env,
    prefix,
  )

/** A fresh service, and an output folder as the earlier night left it. */
export const setStage = async (
  campaign: Campaign,
  name: string,
  text: string,
  speed?: number,
): Promise<Stage> => {
  const folder = join(campaign.folder, name)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const output = join(folder, "output")
  const job = join(folder, "job.yaml")
  cpSync(campaign.template, output, { recursive: true })
  writeFileSync(job, text)
  const service = await startService(campaign.command, join(folder, "service.ndjson"), speed)
  return { campaign, folder, output, job, service }
}

/** The same service, started again where it stopped, with another clock. */
export const changeSpeed = async (stage: Stage, speed: number): Promise<Stage> => {
  await stage.service.stop()
  const { command } = stage.campaign
  return { ...stage, service: await startService(command, join(stage.folder, "service.ndjson"), speed) }
}

/** Stops the service; what went well leaves nothing behind. */
export const strikeStage = async (
  { service, folder }: Stage,
  complaints: ReadonlyArray<string>,
): Promise<void> => {
  await service.stop()
  if (complaints.length === 0) rmSync(folder, { recursive: true, force: true })
}

export const tellEnd = ({ code, stdout, stderr, tookTooLong }: ProcessEnd): string =>
  `exit ${code ?? "by signal"}${tookTooLong ? ", it hung" : ""}: ${`${stdout}${stderr}`.trim().slice(-3_000)}`

/** A database built of the files alone has the same rows, of now and of the history too. */
const differingWhenBuiltAnew = async (
  campaign: Pick<Campaign, "command">,
  output: string,
): Promise<ReadonlyArray<string>> => {
  const copy = `${output}-anew`
  cpSync(output, copy, { recursive: true })
  rmSync(layoutOf(copy).database)
  const end = await nightjar(campaign, ["repair", "--output", copy], {}).ended
  const differing =
    end.code === 0
      ? differingDatabases(
          await readAllTables(copy),
          await readAllTables(output),
          "built anew, the database differs",
        )
      : [`repair of a missing database: ${tellEnd(end)}`]
  rmSync(copy, { recursive: true })
  return differing
}

/** What must hold of an output folder in which nobody works, whatever its night came to. */
export const judgeFolder = async (
  { campaign, output: own }: Pick<Stage, "campaign" | "output">,
  output = own,
): Promise<ReadonlyArray<string>> => {
  const verified = await nightjar(campaign, ["verify", "--output", output], {}).ended
  return [
    ...(await parquetDifferences(output)),
    ...(verified.code === 0 ? [] : [`verify: ${verified.stdout}${verified.stderr}`.trim()]),
    ...(await differingWhenBuiltAnew(campaign, output)),
    ...leftovers(output).map((path) => `${path} is left over`),
  ]
}

/** Everything that must hold once a night has come to its end, whatever came before. */
export const judgeEnd = async (
  stage: Stage,
  { tables: expected }: Undisturbed,
  output = stage.output,
): Promise<ReadonlyArray<string>> => {
  const tables = await readTables(output)
  const facts = factsOf(output, nightJob)
  return [
    ...differingTables(expected, tables, { job: nightJob, orphaned: orphanedTasks(facts) }),
    ...(await judgeFolder(stage, output)),
    ...brokenPromises(stage.service.truth(), facts),
  ]
}

/** How often an undisturbed night makes each call. */
const countSystemCalls = async (campaign: Campaign, pace: Pace): Promise<ReadonlyMap<string, number>> => {
  if (!hasStrace) return new Map()
  const stage = await setStage(campaign, `calls-${pace}`, nightText(pace))
  const log = join(stage.folder, "calls")
  await runNight(stage, tracing(log)).ended
  const calls = callsIn(log)
  await strikeStage(stage, [])
  return calls
}

/** strace in front of a command, which writes all its disk calls there. */
export const tracing = (log: string): ReadonlyArray<string> => [
  "strace",
  "-f",
  "-qqq",
  "--seccomp-bpf",
  "-o",
  log,
  "-e",
  `trace=${diskCalls.join(",")}`,
]

/** How often the busiest thread makes each call: strace counts by thread. */
export const callsIn = (log: string): ReadonlyMap<string, number> => {
  const calls = [...readFileSync(log, "utf8").matchAll(/^(\d+) +([a-z0-9]+)\(/gm)]
  return new Map(
    [...Map.groupBy(calls, ([, , name = ""]) => name)].map(([name, ofName]) => {
      const byThread = Map.groupBy(ofName, ([, thread]) => thread)
      return [name, Math.max(...[...byThread.values()].map(({ length }) => length))]
    }),
  )
}

const liveUndisturbed = async (campaign: Campaign, pace: Pace, aimAtCalls: boolean): Promise<Undisturbed> => {
  const stage = await setStage(campaign, `undisturbed-${pace}`, nightText(pace))
  const factsBefore = countFacts(stage.output)
  const end = await runNight(stage).ended
  if (end.code !== 3) throw new Error(`the undisturbed night failed: ${tellEnd(end)}`)
  const output = join(campaign.folder, `ended-${pace}`)
  cpSync(stage.output, output, { recursive: true })
  const undisturbed: Undisturbed = {
    output,
    tables: await readTables(stage.output),
    exit_code: end.code,
    blocks: blocksOf(stage.output),
    life: {
      elapsedMs: end.elapsedMs,
      facts: countFacts(stage.output) - factsBefore,
      systemCalls: aimAtCalls ? await countSystemCalls(campaign, pace) : new Map(),
    },
  }
  // What is wrong with it is wrong with every disturbed one, which are judged: here it would be looked at twice.
  await strikeStage(stage, [])
  return undisturbed
}

const liveEarlier = async (command: string, folder: string): Promise<string> => {
  const template = join(folder, "template")
  const job = join(folder, "earlier.yaml")
  writeFileSync(job, earlierText)
  const service = await startService(command, join(folder, "earlier.ndjson"))
  const args = ["run", job, "--output", template, "--no-progress"]
  const end = await nightjar({ command }, args, service.env).ended
  await service.stop()
  if (end.code !== 0) throw new Error(`the earlier night failed: ${tellEnd(end)}`)
  return template
}

export interface CampaignOptions {
  /** Aim kills at system calls too, where strace is to be had. */
  readonly aimAtCalls: boolean
}

/** Everything lives in a folder below the machine's temporary one; what failed stays there to be looked at. */
export const openCampaign = async ({ aimAtCalls }: CampaignOptions): Promise<Campaign> => {
  const folder = mkdtempSync(join(tmpdir(), "nightjar-faults-"))
  const command = await installCommand(join(folder, "installed"))
  const template = await liveEarlier(command, folder)
  const known = new Map<Pace, Promise<Undisturbed>>()
  const campaign: Campaign = {
    command,
    folder,
    template,
    aimAtCalls,
    undisturbed: (pace) => {
      const lived = known.get(pace) ?? liveUndisturbed(campaign, pace, aimAtCalls)
      known.set(pace, lived)
      return lived
    },
  }
  return campaign
}
