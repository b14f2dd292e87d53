/**
 * What a job logs in with, held before the service is asked anything: from then on an echo of it is blanked
 * wherever it comes. And the names that the job itself writes down, which are no secrets even where somebody
 * chose one of them as a user name.
 */
import { Redacted } from "effect"
import { namesSecret } from "../jobs/HooksData.ts"
import type { Assignment, Job } from "../jobs/Job.ts"
import type { KnownSecrets } from "../secrets/KnownSecrets.ts"
import type { EngineFinding } from "../forms/EngineForms.ts"

/** A key of a mapping may be a value whose colon was misplaced: only what looks like a name is one. */
const isName = (name: string): boolean => /^[A-Za-z][\w.-]{0,63}$/.test(name)

const namesOf = ({ customer_id, engine_reference, features, configurations, login }: Assignment) => [
  customer_id,
  engine_reference,
  ...features.flatMap((feature) => [feature.code, ...Object.keys(feature.configurations ?? {})]),
  ...Object.keys(configurations),
  ...(login._tag === "Token" ? [login.name] : Object.keys(login.parameters).filter(isName)),
]

/** References are held when they are resolved; here it is what stands in the job and its files. */
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

/** The forms say which fields are passwords, beside what a field's name says. */
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
