/**
 * Sends an order to the night that runs in the output folder and tells what came of it: `pause`, `resume`,
 * `drain` and `limit` are this with different orders. Exit code 2 if no night runs, or if it refuses.
 */
import { Effect } from "effect"
import type { NightPicture } from "../task/NightPicture.ts"
import type { Order } from "../task/Steering.ts"
import { counted } from "../base/Counted.ts"
import { localTime } from "../task/LocalTime.ts"
import { outputFolder } from "./CommonFlags.ts"
import { refuse } from "./Failures.ts"
import { askNight } from "./NightDesk.ts"
import { say, sayJson } from "./Output.ts"

const unstarted = ({ total: { queued, waiting } }: NightPicture): number =>
  queued + waiting.time + waiting.engine + waiting.conflict

const followed = ({ total }: NightPicture): string =>
  `${counted(total.running, "running task")} ${total.running === 1 ? "is" : "are"} followed to the end`

const saidOf = (order: Order, changed: boolean, night: NightPicture): string => {
  const { run_id, limits, deadline_at, paused_until } = night
  const now = changed ? "now" : "already"
  const tasks = counted(unstarted(night), "task")
  switch (order._tag) {
    case "Pause": {
      const over =
        deadline_at !== undefined && deadline_at < (paused_until ?? Infinity)
          ? `The deadline (${localTime(deadline_at, undefined)}) still counts.`
          : `A pause that nobody ends becomes a drain at ${localTime(paused_until ?? 0, undefined)}.`
      return (
        `${run_id} is ${now} paused: ${tasks} not started, ${followed(night)}.\n` +
        `\`nightjar resume\` ends the pause. ${over}`
      )
    }
    case "Resume":
      return changed ? `${run_id} starts tasks again: ${tasks} left.` : `${run_id} is not paused.`
    case "Drain":
      return (
        `${run_id} is ${now} draining: it starts nothing more, ${followed(night)}.\n` +
        "What is left ends with RUN_DRAINED and exit code 4; `nightjar run JOB` starts it."
      )
    case "Limit":
      return (
        `${run_id} ${changed ? "now" : "already"} has at most ${limits.max_in_flight} in flight and ` +
        `${limits.per_engine} per engine. What is running above that is followed to its end.`
      )
  }
}

export const steerNight = Effect.fn("SteerNight.steer")(function* (order: Order, json: boolean) {
  const output = yield* outputFolder
  const answer = yield* askNight(output, order).pipe(
    Effect.catchTags({
      SocketUnusable: () => refuse("night-not-running", { output }),
      SchemaError: () => refuse("night-other-version", { output }),
    }),
  )
  switch (answer._tag) {
    case "Steered": {
      const { changed, night, beside = [] } = answer
      if (json) {
        const others = beside.map((one) => ({ changed: one.changed, ...one.night }))
        return yield* sayJson({ changed, ...night, ...(others.length === 0 ? {} : { beside: others }) })
      }
      for (const one of [answer, ...beside]) yield* say(saidOf(order, one.changed, one.night))
      return
    }
    case "NotSteered": {
      const { run_id, job_limits } = answer.night
      return yield* answer.why === "draining"
        ? refuse("night-draining", { run_id })
        : refuse("limit-above-job", job_limits)
    }
    case "NotExecuting":
    case "Night":
      return yield* refuse("night-not-executing", { output })
    case "NotUnderstood":
      return yield* refuse("night-other-version", { output })
  }
})
