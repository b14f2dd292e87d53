/**
 * The values that a job logs in with, registered as secrets before the first call to the service: from then
 * on, an echo of one is blanked wherever it appears. Also the names that the job itself contains, which are
 * not secrets even if somebody uses one as a user name.
 */
import { Redacted } from "effect"
import { namesSecret } from "../jobs/HooksData.ts"
import type { Assignment, Job } from "../jobs/Job.ts"
import type { KnownSecrets } from "../privacy/KnownSecrets.ts"
import type { EngineFinding } from "../client/EngineForms.ts"

/** A key of a mapping may be a value with a misplaced colon: only what looks like a name is one. */
const isName = (name: string): boolean => /^[A-Za-z][\w.-]{0,63}$/.test(name)

const namesOf = ({ customer_id, engine_reference, features, configurations, login }: Assignment) => [
  customer_id,
  engine_reference,
  ...features.flatMap((feature) => [feature.code, ...Object.keys(feature.configurations ?? {})]),
  ...Object.keys(configurations),
  ...(login._tag === "Token" ? [login.name] : Object.keys(login.parameters).filter(isName)),
]

/** References are registered when they are resolved; this covers the values in the job and its files. */
export const holdLogins = (
  known: KnownSecrets,
  { name, sources }: Pick<Job, "name" | "sources">,
  assignments: ReadonlyArray<Assignment>,
): void => {
  known.name([name, ...sources.flatMap((source) => [source.name, source.final, ...source.records])])
  for (const assignment of assignments) {
    known.name(namesOf(assignment))
    if (assignment.login._tag === "Token") continue
    for (const [parameter, source] of Object.entries(assignment.login.parameters))
      if (source._tag === "Literal") known.hold(source.value, namesSecret(parameter) ? "password" : "login")
  }
}

/** The forms say which fields are passwords, in addition to what a field's name says. */
export const holdPasswords = (
  known: KnownSecrets,
  assignments: ReadonlyArray<Assignment>,
  engines: ReadonlyMap<string, EngineFinding>,
): void => {
  for (const { engine_reference, login } of assignments) {
    const finding = engines.get(engine_reference)
    if (finding?._tag !== "Known" || login._tag === "Token") continue
    for (const [parameter, source] of Object.entries(login.parameters))
      if (source._tag === "Literal" && finding.engine.secret.has(parameter))
        known.hold(Redacted.value(source.value), "password")
  }
}
