/**
 * Many runs of one job at once in one output folder (promise 8): one works, the others say so and end with exit code 5
 * before they start anything; a holder that is killed with SIGKILL holds nothing any more.
 */
import { setTimeout as sleep } from "node:timers/promises"
import type { Campaign, Stage } from "./Campaign.ts"
import { changeSpeed, runNight, setStage, strikeStage, tellEnd, type Verdict } from "./Campaign.ts"
import { longJob, longText } from "./FaultJobs.ts"
import { factsOf } from "./NightChecks.ts"
import { lifeMaxMs } from "./NightjarCommand.ts"
import { usualSpeed } from "./ServiceProcess.ts"

/**
 * The one that works must outlast the start of all the others, however long a busy machine takes for that: its
 * execution is open for longer than any process here lives, until the usual clock ends it.
 */
const openSeconds = lifeMaxMs / 1_000 + 30

export const overlapRuns = async (campaign: Campaign, runs: number): Promise<Verdict> => {
  const stage = await setStage(campaign, `overlap-${runs}`, longText(openSeconds), 1)
  const complaints: Array<string> = []
  const all = Array.from({ length: runs }, () => runNight(stage))
  const refused = await Promise.all(
    all.map(async (run) => {
      const end = await Promise.race([run.ended, othersEnded(all)])
      if (end === "holder") return "holder" as const
      if (end.code !== 5) complaints.push(`not refused: ${tellEnd(end)}`)
      if (!/another process/.test(end.stderr)) complaints.push(`no clear message: ${tellEnd(end)}`)
      return "refused" as const
    }),
  )
  const holders = all.filter((run) => run.isAlive())
  if (holders.length !== 1) complaints.push(`${holders.length} processes work in one folder`)
  const late = await runNight(stage).ended
  if (late.code !== 5) complaints.push(`while the holder works: ${tellEnd(late)}`)
  // Killed between the request and its answer it would leave a start in doubt, which is another campaign's matter.
  while (holders.some((holder) => holder.isAlive()) && !hasStarted(stage)) await sleep(100)
  for (const holder of holders) holder.kill()
  await Promise.all(all.map(({ ended }) => ended))
  const hurried = await changeSpeed(stage, usualSpeed)
  const next = await runNight(hurried).ended
  if (next.code !== 0) complaints.push(`after the holder was killed: ${tellEnd(next)}`)
  const { executions } = hurried.service.truth()
  if (executions.length !== 1) complaints.push(`the service saw ${executions.length} executions`)
  await strikeStage(hurried, complaints)
  const count = refused.filter((each) => each === "refused").length
  return { name: `${runs} overlapping runs`, story: `${count} refused, the holder killed`, complaints }
}

/** The ledger has the answer to the start. */
const hasStarted = ({ output }: Stage): boolean =>
  factsOf(output, longJob).some(({ _tag }) => _tag === "StartAnswered")

/** All but one are over. */
const othersEnded = async (all: ReadonlyArray<ReturnType<typeof runNight>>): Promise<"holder"> => {
  let left = all.length
  await new Promise<void>((resolve) => {
    for (const { ended } of all)
      void ended.then(() => {
        left -= 1
        if (left <= 1) resolve()
      })
  })
  return "holder"
}
