/**
 * One night that is killed with SIGKILL again and again and taken up again until it ends by itself: at each kill the
 * published database is whole and holds whatever the service has deleted, and at the end everything is as if nothing
 * had happened (promises 1, 3, 4, 5 and 6).
 */
import type { Campaign, Stage } from "./Campaign.ts"
import { judgeEnd, judgeFolder, runNight, setStage, strikeStage, tellEnd } from "./Campaign.ts"
import { nightJob, nightText, type Pace } from "./FaultJobs.ts"
import { awaitMoment, countFacts, deadlyPrefix, describe, drawMoments, type Moment } from "./KillMoments.ts"
import { deletedTooSoon, factsOf, unknownByMistake } from "./NightChecks.ts"
import type { ProcessEnd } from "./NightjarCommand.ts"
import { brokenDatabase } from "./PublishedTables.ts"
import type { Verdict } from "./Verdict.ts"

/** A seed whose moments all came too late is drawn again, this often. */
const redrawsMax = 5
/** Every fourth night has sessions that need several reads. */
const slowEvery = 4

export const killNight = async (campaign: Campaign, seed: number, inARow?: number): Promise<Verdict> => {
  const pace = seed % slowEvery === 0 ? "slow" : "quick"
  const { life } = await campaign.undisturbed(pace)
  for (let redrawn = 0; ; redrawn += 1) {
    const moments = drawMoments(seed, redrawn, life, inARow)
    const { kills, ...verdict } = await tryNight(campaign, `night ${seed}`, pace, moments)
    if (kills > 0 || redrawn === redrawsMax || verdict.complaints.length > 0) return verdict
  }
}

/** A night that is killed at every single call of that name, one night for each. */
export const eachCall = async (
  campaign: Campaign,
  name: string,
): Promise<ReadonlyArray<() => Promise<Verdict>>> => {
  const { life } = await campaign.undisturbed("quick")
  return Array.from({ length: life.systemCalls.get(name) ?? 0 }, (_, index) => async () => {
    const moment: Moment = { _tag: "SystemCall", name, nth: index + 1 }
    const { kills: _, ...verdict } = await tryNight(campaign, `${name} ${index + 1}`, "quick", [moment])
    return verdict
  })
}

const tryNight = async (campaign: Campaign, name: string, pace: Pace, moments: ReadonlyArray<Moment>) => {
  const undisturbed = await campaign.undisturbed(pace)
  const stage = await setStage(campaign, name.replace(" ", "-"), nightText(pace))
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
  if (end === undefined || end.code === null) end = await runNight(stage).ended
  if (startsUnknown(stage, end)) {
    story.push("two starts in a row: START_UNKNOWN, so that its tables differ by right")
    complaints.push(...unknownByMistake(stage.service.truth(), factsOf(stage.output, nightJob)))
    complaints.push(...(await judgeKill(stage)), ...(await judgeFolder(stage)))
  } else if (end.code !== undisturbed.exit_code) complaints.push(`it ended with ${tellEnd(end)}`)
  else complaints.push(...(await judgeEnd(stage, undisturbed)))
  await strikeStage(stage, complaints)
  return { name, story: `killed ${story.join(", ") || "never"}`, complaints, kills }
}

/** Killed during a start and again during its probe: the contract leaves the task to an engineer, exit code 4. */
const startsUnknown = (stage: Stage, { code }: ProcessEnd): boolean =>
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
