/**
 * What each of the jobs that are given together may start, read or still have open: what the jobs say, and
 * what their earlier runs left at the service. Values of logins are compared as keyed hashes. A command that
 * prints a secret is not run for this, and a stored token is not opened: such a login may be any other of its
 * engine.
 */
import { Effect, Redacted, Result } from "effect"
import { accessKey, accessOf } from "../service/Ids.ts"
import { embeddedKey } from "../jobs/EmbeddedService.ts"
import type { Assignment, Job, ParameterSource } from "../jobs/Job.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { resolveReferences } from "../task/Logins.ts"
import type { ResolvedReferences } from "../task/Logins.ts"
import type { TouchedLogin, Touches } from "../task/SideBySide.ts"
import { valueKey } from "../privacy/Fingerprint.ts"
import { leftOpenBy } from "./LeftOpen.ts"

const isCommand = (source: ParameterSource): boolean =>
  source._tag === "Reference" && source.reference._tag === "Exec"

/** The assignment without the parameters that only a command knows. */
const withoutCommands = (assignment: Assignment): Assignment => {
  const { login } = assignment
  if (login._tag === "Token") return assignment
  const parameters = Object.fromEntries(
    Object.entries(login.parameters).filter(([, source]) => !isCommand(source)),
  )
  return { ...assignment, login: { ...login, parameters } }
}

const loginOf = (
  { engine_reference, login }: Assignment,
  resolved: ResolvedReferences,
  key: Uint8Array,
): TouchedLogin => {
  if (login._tag === "Token") return { engine_reference, values: {}, isWhole: false }
  const values: Record<string, string> = {}
  const sources = Object.entries(login.parameters)
  for (const [name, source] of sources) {
    const answer = source._tag === "Literal" ? Result.succeed(source.value) : resolved(source.reference)
    if (answer === undefined || Result.isFailure(answer)) continue
    values[name] = valueKey(key, engine_reference, Redacted.value<unknown>(answer.success))
  }
  return { engine_reference, values, isWhole: Object.keys(values).length === sources.length }
}

/** On which clock the runs of a job live. */
const timeOf = ({ service }: Job): string => (service._tag === "Remote" ? "machine" : embeddedKey(service))

export const touchesOf = Effect.fn("JobTouches.of")(function* (job: Job) {
  const key = yield* (yield* Ledger).fingerprintKey
  const resolved = yield* resolveReferences(job.assignments.map(withoutCommands))
  const named = new Set(job.assignments.map(accessKey))
  // Who is no longer in the job is still logged in; nobody knows any more with what.
  const open = yield* leftOpenBy(job)
  const left = open.filter((access) => !named.has(accessKey(access)))
  return {
    job: job.name,
    after: (job.after ?? []).map((one) => one.job),
    time: timeOf(job),
    accesses: [...job.assignments, ...left].map(accessOf),
    sessions: job.sessions.map(({ session_id }) => session_id),
    logins: [
      ...job.assignments.map((assignment) => loginOf(assignment, resolved, key)),
      ...left.map(({ engine_reference }) => ({ engine_reference, values: {}, isWhole: false })),
    ],
    isUnderWay: open.length > 0,
  } satisfies Touches as Touches
})
