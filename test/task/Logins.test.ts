/** Login parameters with their secrets: each reference asked for once, and none ever taken for another. */
import { describe, expect } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type { Assignment } from "../../src/jobs/Job.ts"
import type { ParameterSource, SecretReference } from "../../src/jobs/Scalars.ts"
import { Secrets, SecretUnavailable } from "../../src/jobs/Secrets.ts"
import { assembleLogin, resolveReferences } from "../../src/task/Assignment.ts"
import { effect } from "../harness/Steps.ts"
import { assignment as assignmentWith, literal } from "./Samples.ts"

const env = (name: string): SecretReference => ({ _tag: "Env", name })
const file = (path: string): SecretReference => ({ _tag: "File", path })
const exec = (command: string): SecretReference => ({ _tag: "Exec", command })
const by = (reference: SecretReference): ParameterSource => ({ _tag: "Reference", reference })
const nameOf = (reference: SecretReference): string => {
  switch (reference._tag) {
    case "Env":
      return reference.name
    case "File":
      return reference.path
    case "Exec":
      return reference.command
  }
}
const assignment = (parameters: Readonly<Record<string, ParameterSource>>): Assignment =>
  assignmentWith({ login: { _tag: "Parameters", parameters, tokenized_access: false } })

/** The logins of some customers, and what was asked for; `missing` cannot be had. */
const logins = (all: ReadonlyArray<Assignment>) => {
  const asked: Array<string> = []
  const secrets = Secrets.of({
    resolve: (reference) => {
      asked.push(`${reference._tag} ${nameOf(reference)}`)
      return nameOf(reference) === "missing"
        ? Effect.fail(new SecretUnavailable({ reference: "env:missing", reason: "there is none" }))
        : Effect.succeed(Redacted.make(`${reference._tag} of ${nameOf(reference)}`))
    },
  })
  return Effect.gen(function* () {
    const resolved = yield* resolveReferences(all)
    const told = all.map((one) => {
      const login = assembleLogin(one, resolved)
      expect(JSON.stringify(login)).not.toContain(" of a")
      return login._tag === "Resolved" ? Redacted.value(login.parameters) : login
    })
    return { asked: asked.toSorted(), told }
  }).pipe(Effect.provideService(Secrets, secrets))
}

describe("a login", () => {
  effect("gets the secret of its own reference, of any kind, and each is resolved once", function* () {
    const kinds = [env, file, exec].flatMap((kind) => [kind("a"), kind("b")])
    const { asked, told } = yield* logins(
      [...kinds, ...kinds].map((reference) => assignment({ user: literal("u"), password: by(reference) })),
    )
    const own = kinds.map((reference) => ({
      user: "u",
      password: `${reference._tag} of ${nameOf(reference)}`,
    }))
    expect(told).toEqual([...own, ...own])
    expect(asked).toEqual(["Env a", "Env b", "Exec a", "Exec b", "File a", "File b"])
  })

  effect("names every missing parameter, and affects no other login", function* () {
    const { told } = yield* logins([
      assignment({ user: by(env("missing")), branch: by(env("a")), password: by(file("missing")) }),
      assignment({ user: by(env("a")) }),
      assignmentWith({ login: { _tag: "Token", name: "t" } }),
    ])
    expect(told).toEqual([
      {
        _tag: "Unresolved",
        missing: ["user: env:missing: there is none", "password: env:missing: there is none"],
      },
      { user: "Env of a" },
      { _tag: "NoParameters" },
    ])
    const unasked = assembleLogin(assignment({ user: by(env("a")) }), () => undefined)
    expect(unasked).toEqual({ _tag: "Unresolved", missing: ["user: was not resolved"] })
  })
})
