/**
 * One night that is killed with SIGKILL again and again and taken up again until it ends by itself: at each kill the
 * published database is whole and holds whatever the service has deleted, and at the end everything is as if nothing
 * had happened (promises 1, 3, 4, 5 and 6).
 */
import type { Campaign, Stage } from "./Campaign.ts"
import { judgeEnd, judgeFolder, runNight, setStage, strikeStage, tellEnd, type Verdict } from "./Campaign.ts"
import { nightJob, nightText, type Pace } from "./FaultJobs.ts"
import { killAgain, killAt } from "./KilledProcess.ts"
import { drawMoments, type Moment } from "./KillMoments.ts"
import { deletedTooSoon, factsOf, unknownByMistake } from "./NightChecks.ts"
import type { ProcessEnd } from "./NightjarCommand.ts"
import { brokenDatabase } from "./PublishedTables.ts"

/** Every fourth night has sessions that need several reads. */
const slowEvery = 4

export const killNight = async (campaign: Campaign, seed: number, inARow?: number): Promise<Verdict> => {
  const pace = seed % slowEvery === 0 ? "slow" : "quick"
  const { life } = await campaign.undisturbed(pace)
  return killAgain((redrawn) =>
    tryNight(campaign, `night ${seed}`, pace, drawMoments(seed, redrawn, life, inARow)),
  )
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
  const { output, service } = stage
  const judgeKill = async () => [
    ...(await brokenDatabase(output)),
    ...(await deletedTooSoon(output, service.truth())),
  ]
  const start = (prefix?: ReadonlyArray<string>) => runNight(stage, prefix)
  const { story, complaints, kills, end } = await killAt(moments, { output, start, judgeKill })
  const isUnknown = startsUnknown(stage, end)
  if (isUnknown) {
    complaints.push(...unknownByMistake(service.truth(), factsOf(output, nightJob)))
    complaints.push(...(await judgeKill()), ...(await judgeFolder(stage)))
  } else if (end.code !== undisturbed.exit_code) complaints.push(`it ended with ${tellEnd(end)}`)
  else complaints.push(...(await judgeEnd(stage, undisturbed)))
  await strikeStage(stage, complaints)
  const why = isUnknown ? ", two starts in a row: START_UNKNOWN, so that its tables differ by right" : ""
  return { name, story: `${story()}${why}`, complaints, kills }
}

/** Killed during a start and again during its probe: the contract leaves the task to an engineer, exit code 4. */
const startsUnknown = (stage: Stage, { code }: ProcessEnd): boolean =>
  code === 4 &&
  factsOf(stage.output, nightJob).some(
    (fact) => fact._tag === "TaskSettled" && fact.reason === "START_UNKNOWN",
  )
