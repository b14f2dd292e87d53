/**
 * A process that is killed with SIGKILL at its moments, one after another, and then left to end by itself; what must
 * hold is looked at after every kill.
 */
import type { Verdict } from "./Campaign.ts"
import { awaitMoment, countFacts, deadlyPrefix, describe, type Moment } from "./KillMoments.ts"
import type { ProcessEnd, RunningProcess } from "./NightjarCommand.ts"

/** Moments that all came too late are drawn again, this often. */
const redrawsMax = 5

export const killAgain = async (
  attempt: (redrawn: number) => Promise<Verdict & { readonly kills: number }>,
): Promise<Verdict> => {
  for (let redrawn = 0; ; redrawn += 1) {
    const { kills, ...verdict } = await attempt(redrawn)
    if (kills > 0 || redrawn === redrawsMax || verdict.complaints.length > 0) return verdict
  }
}

interface Killable {
  readonly output: string
  readonly start: (prefix?: ReadonlyArray<string>) => RunningProcess
  readonly judgeKill: () => Promise<ReadonlyArray<string>>
}

/** The end is that of the process that nobody killed. */
export const killAt = async (moments: ReadonlyArray<Moment>, { output, start, judgeKill }: Killable) => {
  const killed: Array<string> = []
  const complaints: Array<string> = []
  let end: ProcessEnd | undefined
  for (const moment of moments) {
    const factsBefore = countFacts(output)
    const running = start(deadlyPrefix(moment))
    await awaitMoment(moment, running, output, factsBefore)
    running.kill()
    end = await running.ended
    // strace ends as the process that it watched did, or with the shell's number for it.
    if (end.code !== null && end.code !== 137) break
    killed.push(describe(moment))
    complaints.push(...(await judgeKill()).map((what) => `killed ${describe(moment)}: ${what}`))
    end = undefined
  }
  end ??= await start().ended
  const story = () => `killed ${killed.join(", ") || "never"}`
  return { story, complaints, kills: killed.length, end }
}
