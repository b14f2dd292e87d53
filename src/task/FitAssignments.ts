/**
 * The assignments of a plan checked against the forms of their engines, grouped by engine. If an engine's
 * forms turn out to be unusable only while values are checked, all its assignments get that result.
 */
import { Effect } from "effect"
import type { Assignment } from "../jobs/Job.ts"
import { seeEngine } from "./Assignment.ts"
import type { Task } from "./Assignment.ts"
import { FormCache } from "../client/EngineForms.ts"
import type { EngineFinding, Fit, FitCase } from "../client/EngineForms.ts"
import type { ResolvedLogin } from "./Logins.ts"

/** `logins` are those of the assignments, in the same order; so are the fits. */
export const fitAssignments = Effect.fn("Planning.fitAssignments")(function* (
  assignments: ReadonlyArray<Assignment>,
  logins: ReadonlyArray<ResolvedLogin>,
  found: ReadonlyMap<string, EngineFinding>,
) {
  const forms = yield* FormCache
  const engines = new Map(found)
  const fits: Array<Fit | undefined> = assignments.map(() => undefined)
  const asked = new Map<string, Array<{ readonly index: number; readonly one: FitCase }>>()
  assignments.forEach((assignment, index) => {
    const ofEngine = asked.get(assignment.engine_reference) ?? []
    ofEngine.push({ index, one: caseOf(assignment, logins[index]) })
    asked.set(assignment.engine_reference, ofEngine)
  })
  for (const [reference, cases] of asked) {
    const finding = found.get(reference)
    if (finding?._tag !== "Known") continue
    const answer = yield* forms.fit(
      finding.engine,
      cases.map(({ one }) => one),
    )
    if ("why" in answer) engines.set(reference, answer)
    else cases.forEach(({ index }, position) => (fits[index] = answer[position]))
  }
  return { engines, fits }
})

const caseOf = (
  { features, configurations }: Pick<Assignment, "features" | "configurations">,
  login: ResolvedLogin | undefined,
): FitCase =>
  login?._tag === "Resolved"
    ? { features, configurations, parameters: login.parameters }
    : { features, configurations }

/** A task that is about to start and the engine as it is now. */
export const fitTask = Effect.fn("Planning.fitTask")(function* ({
  engine_reference,
  features,
  start: { configurations, login },
}: Task) {
  const forms = yield* FormCache
  const finding = yield* forms.look(engine_reference)
  if (finding._tag !== "Known") return seeEngine(finding, undefined)
  const parameters = login._tag === "Parameters" ? { parameters: login.parameters } : {}
  const answer = yield* forms.fit(finding.engine, [{ features, configurations, ...parameters }])
  return "why" in answer ? seeEngine(answer, undefined) : seeEngine(finding, answer[0])
})
