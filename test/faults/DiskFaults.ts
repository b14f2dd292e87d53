/**
 * Nights on a disk that is full and on one that breaks (promise 7): the command says so in a line, ends with exit
 * code 4, has deleted nothing that is not published, and completes the night once there is room again. The full
 * disk is a tiny tmpfs of its own namespace, the broken one is strace answering EIO to chosen system calls.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { localDate } from "../../src/task/ChooseRun.ts"
import { timezone } from "../harness/Environment.ts"
import type { Campaign, Stage } from "./Campaign.ts"
import { blockBytes, blocksOf, judgeEnd, runNight, setStage, strikeStage, tellEnd } from "./Campaign.ts"
import type { Verdict } from "./Campaign.ts"
import { nightJob, nightText } from "./FaultJobs.ts"
import { hasStrace, injecting } from "./KillMoments.ts"
import { deletedTooSoon } from "./NightChecks.ts"
import { startProcess, type ProcessEnd } from "./NightjarCommand.ts"
import { brokenDatabase } from "./PublishedTables.ts"
import { readTruth } from "./ServiceProcess.ts"

/** What is wrong with how a command told that the disk failed it. */
const badTelling = ({ code, stderr, tookTooLong }: ProcessEnd): ReadonlyArray<string> => {
  const lines = stderr.split("\n")
  const message = lines.find((line) => line.startsWith("nightjar: "))
  return [
    ...(code === 4
      ? []
      : [`exit code ${code}${tookTooLong ? ", it hung" : ""}: ${stderr.trim().slice(-400)}`]),
    ...(message === undefined ? ["no line says what happened"] : []),
    ...(lines.some((line) => /^ {4}at /.test(line)) ? ["there is a stack on stderr"] : []),
  ]
}

/** A failed command is judged by its message; whatever it left must be whole and safe. */
const judgeFailure = async (
  end: ProcessEnd,
  output: string,
  truth: ReturnType<typeof readTruth>,
): Promise<ReadonlyArray<string>> =>
  [...badTelling(end), ...(await brokenDatabase(output)), ...(await deletedTooSoon(output, truth))].map(
    (what) => `at the fault: ${what}`,
  )

const canMount = spawnSync("unshare", ["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status === 0
export const fullDiskSkipped = canMount ? undefined : "unshare -rm with a tmpfs is not to be had here"
export const brokenDiskSkipped = hasStrace ? undefined : "strace is not to be had here"

/** Both commands run in one namespace, the disk between them is enlarged; copies of it are left outside. */
const fullDiskScript = `
  mount -t tmpfs -o size="$SIZE" tmpfs "$DISK" && cp -a "$TEMPLATE" "$DISK/output" || exit 90
  "$NODE" "$COMMAND" run "$JOB" --output "$DISK/output" --no-progress 2> "$STAGE/first.err"
  echo $? > "$STAGE/first.code"
  cp -a "$DISK/output" "$STAGE/first" && cp "$STAGE/service.ndjson" "$STAGE/first.ndjson"
  mount -o remount,size=512m "$DISK"
  "$NODE" "$COMMAND" run "$JOB" --output "$DISK/output" --no-progress
  code=$?
  cp -a "$DISK/output/." "$STAGE/output" && exit $code
`

/** A night with so much room, in 4 KiB blocks, besides what the earlier night takes. */
export const fillDisk = async (campaign: Campaign, roomBlocks: number): Promise<Verdict> => {
  const undisturbed = await campaign.undisturbed("quick")
  const stage = await setStage(campaign, `full-${roomBlocks}`, nightText("quick"))
  const disk = join(stage.folder, "disk")
  mkdirSync(disk)
  const end = await startProcess(["unshare", "-rm", "bash", "-c", fullDiskScript], {
    ...stage.service.env,
    SIZE: String((blocksOf(campaign.template) + roomBlocks) * blockBytes),
    DISK: disk,
    TEMPLATE: campaign.template,
    NODE: process.execPath,
    COMMAND: campaign.command,
    JOB: stage.job,
    STAGE: stage.folder,
  }).ended
  const first = join(stage.folder, "first")
  const complaints: Array<string> = []
  let story = "it never came to the disk"
  if (!existsSync(first)) complaints.push(`the disk could not be made: ${tellEnd(end)}`)
  else {
    const stderr = readFileSync(`${first}.err`, "utf8")
    const code = Number(readFileSync(`${first}.code`, "utf8"))
    story = code === undisturbed.exit_code ? "it fitted" : lastWord(stderr)
    if (code !== undisturbed.exit_code)
      complaints.push(
        ...(await judgeFailure({ ...end, code, stderr }, first, readTruth(`${first}.ndjson`))),
        ...(/space|full/i.test(stderr) ? [] : [`nothing says that the disk is full: ${stderr.trim()}`]),
      )
    complaints.push(...(await judgeSecond(stage, end, undisturbed)))
  }
  await strikeStage(stage, complaints)
  return { name: `full disk with ${roomBlocks * 4} KiB of room`, story, complaints }
}

const lastWord = (stderr: string): string =>
  stderr.split("\n").find((line) => line.startsWith("nightjar: ")) ?? stderr.trim().slice(-200)

const judgeSecond = async (
  stage: Stage,
  end: ProcessEnd,
  undisturbed: Awaited<ReturnType<Campaign["undisturbed"]>>,
): Promise<ReadonlyArray<string>> =>
  end.code === undisturbed.exit_code
    ? await judgeEnd(stage, undisturbed)
    : [`once the disk was well again: ${tellEnd(end)}`]

/** Rooms from none to more than a night needs, denser where little is left: there the small files fail. */
export const roomsFor = async (campaign: Campaign, steps: number): Promise<ReadonlyArray<number>> => {
  const { blocks } = await campaign.undisturbed("quick")
  // Beside what it leaves, a publication needs room for the database that it builds.
  const most = Math.ceil((blocks - blocksOf(campaign.template)) * 2)
  return Array.from({ length: steps }, (_, step) => Math.round(most * (step / steps) ** 2))
}

export interface BrokenCall {
  readonly name: string
  readonly nth: number
  /** Once: the disk is well again after that; else every further call fails too. */
  readonly once: boolean
}

const runDate = (): string => localDate(performance.timeOrigin + performance.now(), timezone)

/** write(2) also serves pipes and the event loop, which are no disk: only these files' count. */
const writtenFiles = (output: string): ReadonlyArray<string> => {
  const run = `${nightJob}.${runDate()}`
  return [
    `landing/${run}/segment-000001.njl`,
    "tables/manifest.next.json.tmp",
    "tables/manifest.json.tmp",
    `runs/${run}/log.ndjson`,
    `runs/${run}/summary.json.tmp`,
    ...["tasks", "runs", "executions", "customer_profiles"].flatMap((table) =>
      [2, 3].map((version) => `tables/${table}/run_date=${runDate()}/${run}-v${version}.parquet.tmp`),
    ),
  ].map((path) => join(output, path))
}

/** Calls on a disk that are made to fail, and how many of each a night makes at most. */
const breakable = ["fsync", "fdatasync", "rename", "pwrite64", "write", "ftruncate", "unlink"] as const
const writesMax = 40

/** Too little for the tables, enough for the ledger; in blocks. */
export const sampleRoom = 500

/** `count` of all the calls of a night, evenly, half of them failing once and half for good. */
export const brokenCalls = async (campaign: Campaign, count: number): Promise<ReadonlyArray<BrokenCall>> => {
  const { life } = await campaign.undisturbed("quick")
  const all = breakable.flatMap((name) =>
    Array.from(
      { length: Math.min(life.systemCalls.get(name) ?? 0, name === "write" ? writesMax : 1e9) },
      (_, n) => [
        { name, nth: n + 1, once: true },
        { name, nth: n + 1, once: false },
      ],
    ).flat(),
  )
  const every = Math.max(1, all.length / count)
  // An odd step would only ever meet one of the two kinds.
  return Array.from({ length: Math.min(count, all.length) }, (_, n) => all[Math.floor(n * every)]).flatMap(
    (call, n) => (call === undefined ? [] : [{ ...call, once: n % 2 === 0 }]),
  )
}

export const breakDisk = async (campaign: Campaign, { name, nth, once }: BrokenCall): Promise<Verdict> => {
  const undisturbed = await campaign.undisturbed("quick")
  const stage = await setStage(campaign, `broken-${name}-${nth}-${once ? "once" : "on"}`, nightText("quick"))
  const injection = `error=EIO:when=${nth}${once ? "" : "+"}`
  const paths = name === "write" ? writtenFiles(stage.output) : []
  const end = await runNight(stage, injecting(name, injection, paths)).ended
  const complaints: Array<string> = []
  const well = end.code === undisturbed.exit_code
  if (!well) complaints.push(...(await judgeFailure(end, stage.output, stage.service.truth())))
  const second = well ? end : await runNight(stage).ended
  complaints.push(...(await judgeSecond(stage, second, undisturbed)))
  await strikeStage(stage, complaints)
  return {
    name: `EIO for ${name} ${nth}${once ? "" : " and all after it"}`,
    story: well ? "the night went on" : lastWord(end.stderr),
    complaints,
  }
}
