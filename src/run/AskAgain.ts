/**
 * What a rerun asks for: pure. Of each task the features that are not in the tables after its night, as the
 * job names them now; a task of which nothing is known is asked for as a whole. A rerun that is resumed asks
 * for what it asked for before.
 */
import { accessKey } from "../service/Ids.ts"
import type { Assignment, JobFeature } from "../jobs/Job.ts"
import { subjectOf } from "../ledger/RunState.ts"
import type { RunState } from "../ledger/RunState.ts"
import { deliveredInNight } from "../ledger/WholeNight.ts"

/** Which features are asked for, by subject, as `subjectOf` names it; other subjects are not asked for. */
export type Asked = ReadonlyMap<string, (code: string) => boolean>

export const askedAgain = (night: ReadonlyArray<RunState>, subjects: Iterable<string>): Asked => {
  const delivered = deliveredInNight(night)
  return new Map(
    [...subjects].map((subject) => [subject, (code) => delivered.get(subject)?.has(code) !== true]),
  )
}

export const askedBy = ({ tasks }: RunState): Asked =>
  new Map(
    [...tasks.values()].map((task) => {
      const { features } = task.planned
      return [subjectOf(task), (code) => features.length === 0 || features.includes(code)]
    }),
  )

/** No feature at all would mean the engine's defaults: then all are asked for. */
const wantedOf = (
  features: ReadonlyArray<JobFeature>,
  isAsked: (code: string) => boolean,
): ReadonlyArray<JobFeature> => {
  const wanted = features.filter(({ code }) => isAsked(code))
  return wanted.length === 0 ? features : wanted
}

/** The assignments that are asked for, and which of them lack features that the job names. */
export const narrowed = (assignments: ReadonlyArray<Assignment>, asked: Asked | undefined) => {
  const partly = new Set<string>()
  if (asked === undefined) return { assignments, partly }
  const wanted = assignments.flatMap((one) => {
    const isAsked = asked.get(accessKey(one))
    if (isAsked === undefined) return []
    const features = wantedOf(one.features, isAsked)
    if (features.length < one.features.length) partly.add(accessKey(one))
    return [{ ...one, features }]
  })
  return { assignments: wanted, partly }
}
