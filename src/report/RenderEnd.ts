/**
 * One row of the table of ends, for people and for programs: what the reason means, what follows from it,
 * and what to do next. Pure. A feature changes no exit code and is not retried by itself: its task is.
 */
import { actionNeeded, exitOf } from "../service/EndRow.ts"
import type { EndRow } from "../service/EndRow.ts"
import { isReason } from "../service/Ends.ts"
import { wrap } from "./TextTable.ts"

/** Whether the same run tries it again. */
export const triedAgain = ({ retry, opensBreaker }: Pick<EndRow, "retry" | "opensBreaker">): string =>
  retry ? "yes, with growing waits" : opensBreaker ? "never with the same credentials" : "no"

export const renderEnd = (reason: string, row: EndRow, width: number): string => {
  const { means, next, unstarted } = row
  const isOfTask = isReason(reason)
  const follows = (end: Pick<EndRow, "outcome" | "who_acts" | "acting">) => {
    const code = isOfTask ? `, exit code ${exitOf(end.outcome)}` : ""
    return `${end.outcome}, ${actionNeeded[end.acting ?? end.who_acts]}${code}`
  }
  return [
    `${reason}: ${means}`,
    `Outcome: ${follows(row)}`,
    ...(unstarted === undefined ? [] : [`If it was never started: ${follows(unstarted)}`]),
    ...(isOfTask ? [`Tried again in the same run: ${triedAgain(row)}`] : []),
    `Next: ${next}`,
  ]
    .map((line) => wrap(line, width, "", "  "))
    .join("\n")
}

export const endJson = (reason: string, { opensBreaker, retry, ...row }: EndRow) => ({
  reason,
  ...row,
  ...(isReason(reason) ? { retry, opens_breaker: opensBreaker, exit_code: exitOf(row.outcome) } : {}),
})
