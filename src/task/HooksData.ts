/**
 * The pairs of `hooks_extra_data` compared with every secret of a job, once all of them are resolved and
 * the forms say which fields are passwords: loading could not know this. Nothing is started for a job that
 * would send a secret into webhook addresses.
 */
import { Effect, Redacted, Result } from "effect"
import { checkHooks, keysOf, namesSecret, secretsOfLogin } from "../jobs/HooksData.ts"
import type { Assignment, Job, SecretReference } from "../jobs/Job.ts"
import { JobInvalid, makeFindings } from "../jobs/Problem.ts"
import { resolveReference } from "../jobs/Secrets.ts"
import { makeSecretFinder } from "../jobs/SecretMatch.ts"
import type { EngineFinding } from "../client/EngineForms.ts"
import { assembleLogin } from "./Logins.ts"
import type { ResolvedReferences } from "./Logins.ts"

/** The password fields of an engine's form, in addition to what a field's name says. */
const isSecretOn = (finding: EngineFinding | undefined) => (name: string) =>
  namesSecret(name) || (finding?._tag === "Known" && finding.engine.secret.has(name))

type CheckedJob = Pick<Job, "assignments" | "hooks" | "service" | "tokens_key" | "pseudonyms">
type Engines = ReadonlyMap<string, EngineFinding>

/** Fails with JobInvalid. Anything merely suspicious was reported when the job was loaded. */
const checkPairs = Effect.fnUntraced(function* (
  job: CheckedJob,
  resolved: ResolvedReferences,
  engines: Engines,
) {
  const keys = yield* Effect.forEach(keysOf(job), ({ reference, whose }) =>
    Effect.map(resolveReference(reference), (value) => ({
      value: Redacted.value(value),
      whose,
      kept: "password" as const,
    })),
  )
  const valueOf = (reference: SecretReference): unknown => {
    const answer = resolved(reference)
    return answer !== undefined && Result.isSuccess(answer) ? Redacted.value(answer.success) : undefined
  }
  const secrets = job.assignments.flatMap((assignment) =>
    secretsOfLogin(assignment, valueOf, isSecretOn(engines.get(assignment.engine_reference))),
  )
  const findings = makeFindings()
  checkHooks(job.hooks, [...secrets, ...keys], findings)
  const problems = findings.errors()
  if (problems.length > 0) return yield* new JobInvalid({ problems, warnings: [] })
})

/**
 * The assignments whose secrets a plan of `assignments` (some or all of the job's) has to know. If the job
 * has pairs, these are all, because any of their secrets may appear there.
 */
export const assignmentsBehind = (
  job: Pick<CheckedJob, "assignments" | "hooks">,
  assignments: ReadonlyArray<Assignment>,
): ReadonlyArray<Assignment> => (job.hooks.length > 0 ? job.assignments : assignments)

/** The logins of `assignments`, in the same order, once their references are resolved. */
export const checkedLogins = Effect.fn("Planning.checkedLogins")(function* (
  job: CheckedJob,
  assignments: ReadonlyArray<Assignment>,
  engines: Engines,
  resolved: ResolvedReferences,
) {
  if (job.hooks.length > 0) yield* checkPairs(job, resolved, engines)
  return assignments.map((assignment) => assembleLogin(assignment, resolved))
})

/** Whether a login opened only now, such as a stored token's key, appears in the pairs of its start. */
export const holdsSecret = (
  hooks_extra_data: Readonly<Record<string, string>>,
  secrets: ReadonlyArray<string>,
): boolean => {
  const pairs = Object.entries(hooks_extra_data).flat()
  const find = makeSecretFinder(secrets.map((value) => ({ value, whose: "", kept: "password" as const })))
  return pairs.some((text) => find(text).length > 0)
}
