/**
 * One night that is killed with SIGKILL again and again and taken up again until it ends by itself: at each kill the
 * published database is whole and holds whatever the service has deleted, and at the end everything is as if nothing
 * had happened (promises 1, 3, 4, 5 and 6).
 */
import type { Campaign, Stage } from "./Campaign.ts"
import { judgeEnd, runNight, setStage, strikeStage, tellEnd } from "./Campaign.ts"
import { nightJob, nightText } from "./FaultJobs.ts"
import { awaitMoment, countFacts, deadlyPrefix, describe, drawMoments } from "./KillMoments.ts"
import type { Moment } from "./KillMoments.ts"
import { deletedTooSoon, factsOf } from "./NightChecks.ts"
import type { ProcessEnd } from "./NightjarCommand.ts"
import { brokenDatabase } from "./PublishedTables.ts"

export interface Verdict {
  readonly name: string
  readonly story: string
  readonly complaints: ReadonlyArray<string>
}

/** A seed whose moments all came too late is drawn again, this often. */
const redrawsMax = 5
/** Every fourth night has sessions that need several reads. */
const slowEvery = 4
/** A start that was lost twice is left to a further `run` (START_UNKNOWN); more than this is a loop. */
const processesMax = 10

export const killNight = async (campaign: Campaign, seed: number): Promise<Verdict> => {
  for (let redrawn = 0; ; redrawn += 1) {
    const { kills, ...verdict } = await tryNight(campaign, seed, redrawn)
    if (kills > 0 || redrawn === redrawsMax || verdict.complaints.length > 0) return verdict
  }
}

const tryNight = async (campaign: Campaign, seed: number, redrawn: number) => {
  const pace = seed % slowEvery === 0 ? "slow" : "quick"
  const undisturbed = await campaign.undisturbed(pace)
  const moments = drawMoments(seed, redrawn, undisturbed.life)
  const stage = await setStage(campaign, `night-${seed}`, nightText(pace))
  const story: Array<string> = []
  const complaints: Array<string> = []
  let end: ProcessEnd | undefined
  for (const moment of moments) {
    end = await disturb(stage, moment)
    if (end.code !== null) break
    story.push(describe(moment))
    complaints.push(...(await judgeKill(stage)).map((what) => `killed ${describe(moment)}: ${what}`))
  }
  const kills = story.length
  for (let run = 0; end?.code !== undisturbed.exit_code && run < processesMax; run += 1) {
    if (end !== undefined && end.code !== null && !mayRunAgain(stage, end)) break
    end = await runNight(stage).ended
    if (end.tookTooLong) break
  }
  if (end?.code !== undisturbed.exit_code)
    complaints.push(`it ended with ${end === undefined ? "nothing" : tellEnd(end)}`)
  else complaints.push(...(await judgeEnd(stage, undisturbed)))
  strikeStage(stage, complaints)
  return { name: `night ${seed}`, story: `killed ${story.join(", ") || "never"}`, complaints, kills }
}

/** A start whose answer was lost twice ends as START_UNKNOWN (exit code 4), which a further run resolves. */
const mayRunAgain = (stage: Stage, { code }: ProcessEnd): boolean =>
  code === 4 &&
  factsOf(stage.output, nightJob).some(
    (fact) => fact._tag === "TaskSettled" && fact.reason === "START_UNKNOWN",
  )

/** Starts the night and kills it at its moment; ends with a code where it was over before. */
const disturb = async (stage: Stage, moment: Moment): Promise<ProcessEnd> => {
  const factsBefore = countFacts(stage.output)
  const running = runNight(stage, deadlyPrefix(moment))
  await awaitMoment(moment, running, stage.output, factsBefore)
  running.kill()
  const end = await running.ended
  // strace ends as the process that it watched did, or with the shell's number for it.
  return end.code === 137 ? { ...end, code: null } : end
}

const judgeKill = async (stage: Stage): Promise<ReadonlyArray<string>> => [
  ...(await brokenDatabase(stage.output)),
  ...(await deletedTooSoon(stage.output, stage.service.truth())),
]
