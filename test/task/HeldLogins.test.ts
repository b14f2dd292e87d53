import { assert, describe, it } from "@effect/vitest"
import { builtInSources } from "../../src/service/FlowResults.ts"
import { holdLogins, holdPasswords } from "../../src/task/Plan.ts"
import { makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"
import { assignment as assignmentWith, known as knownEngine, literal, paramsForm } from "./Samples.ts"
import { anId } from "../harness/Id.ts"

const assignment = (parameters: Readonly<Record<string, unknown>>) => {
  const literals = Object.entries(parameters).map(([name, value]) => [name, literal(value)])
  return assignmentWith({
    customer_id: anId("customer-0007"),
    features: [{ code: "accounts_read", configurations: { last_n_years: 5 } }],
    configurations: { territory: "x" },
    login: { _tag: "Parameters", tokenized_access: false, parameters: Object.fromEntries(literals) },
  })
}
const job = { name: "nightly-spain", sources: builtInSources }

describe("a job's login value", () => {
  it("is registered before the first call: a password by its name everywhere, another value in answers", () => {
    const known = makeKnownSecrets()
    holdLogins(known, job, [assignment({ password: "hunter22", username: "maria.77", years: [20191234] })])
    const text = "hunter22 maria.77 20191234"
    assert.strictEqual(known.clean(text, "free"), "[blanked] [blanked] [blanked]")
    assert.strictEqual(known.clean(text, "own"), "[blanked] maria.77 20191234")
  })

  it("is a password if one value is both, and a token's name is not a secret", () => {
    const known = makeKnownSecrets()
    const both = assignment({ username: "hunter22", password: "hunter22" })
    const login = { _tag: "Token", name: "token-of-maria" } as const
    holdLogins(known, job, [{ ...both, login }, both])
    assert.strictEqual(known.clean("hunter22", "own"), "[blanked]")
    known.hold("token-of-maria", "process")
    assert.strictEqual(known.clean("token-of-maria", "own"), "token-of-maria")
  })

  it("is a password if the form says so", () => {
    const known = makeKnownSecrets()
    const form = paramsForm({ code: { type: "string", format: "password" }, user: { type: "string" } })
    const one = assignment({ code: "hunter22", user: "maria.77" })
    const all = [{ ...one, login: { _tag: "Token", name: "token-of-maria" } } as const, one]
    holdLogins(known, job, all)
    assert.strictEqual(known.clean("hunter22 maria.77", "own"), "hunter22 maria.77")
    holdPasswords(known, all, new Map([["bank:website", knownEngine({ parameters: form })]]))
    assert.strictEqual(known.clean("hunter22 maria.77", "own"), "[blanked] maria.77")
  })

  it("is not a secret if it is a name that the job itself contains", () => {
    const known = makeKnownSecrets()
    const names = [
      "customer-0007",
      "bank:website",
      "accounts_read",
      "last_n_years",
      "territory",
      "password",
      "nightly-spain",
      "flow_results",
    ]
    holdLogins(
      known,
      job,
      names.map((name) => assignment({ password: name })),
    )
    for (const name of names) assert.strictEqual(known.clean(`a ${name}`, "free"), `a ${name}`)
  })
})
