/**
 * Which of the jobs that are given together go on side by side, and which wait for whom and why, in words:
 * `plan` says it on stdout, `run` on stderr before any of them starts.
 */
import { Effect } from "effect"
import type { Turn, Wait } from "../task/SideBySide.ts"
import { counted } from "../base/Text.ts"
import { note } from "./Output.ts"

const reasonText = (wait: Wait): string => {
  switch (wait.why) {
    case "after":
      return "as `after` asks"
    case "time":
      return "they do not run on the same clock"
    case "customer": {
      const { customer_id, engine_reference } = wait.example
      const others = wait.shared > 1 ? ` and ${wait.shared - 1} more` : ""
      return `both name ${customer_id} on ${engine_reference}${others}`
    }
    case "session":
      return `both read ${wait.shared > 1 ? counted(wait.shared, "session") : `the session ${wait.example}`}`
    case "login":
      return `both may send the same login to ${wait.engine_reference}`
  }
}

/** For people: a line for the jobs that start at once, and one for each that waits. */
export const turnLines = (turns: ReadonlyArray<Turn>): ReadonlyArray<string> => {
  const first = turns.flatMap(({ job, waits }) => (waits.length === 0 ? [job] : []))
  return [
    ...(first.length > 1 ? [`Side by side: ${first.join(", ")}.`] : []),
    ...turns.flatMap(({ job, waits }) => {
      const whom = waits.map((wait) => `${wait.job} (${reasonText(wait)})`)
      return whom.length === 0 ? [] : [`${job} starts after ${whom.join(", ")}.`]
    }),
  ]
}

/** Told only if there is more than one. */
export const tellTurns = (turns: ReadonlyArray<Turn>) =>
  Effect.forEach(turnLines(turns), note, { discard: true })
