/** `pseudonyms` in a job file: where its key may be, and what the job must not be called. */
import { describe, expect } from "@effect/vitest"
import { load } from "./loading.ts"
import { effect } from "../harness/Steps.ts"

const jobOf = (pseudonyms: string, name = "nightly") => `name: ${name}
service: sandbox
engines: [bank:website]
customers: [{ id: acme-17, parameters: {} }]
sessions: [{ id: "s-1", customer: Globex }]
pseudonyms: ${pseudonyms}
`

describe("the key of the pseudonyms", () => {
  effect("is in the environment or a file, and kept as a reference with the columns", function* () {
    const { job, errors } = yield* load(jobOf("{ key: file:keys/p, columns: { emails: [email] } }"))
    expect(errors).toEqual([])
    expect(job).toMatchObject({
      pseudonyms: { key: { _tag: "File", path: "keys/p" }, columns: { emails: ["email"] } },
    })
    const files = { ".env": "KEY=from the file\n" }
    const { job: bound } = yield* load(jobOf("{ key: env:KEY }"), { files })
    // A file of variables that others can read is refused: this one is.
    expect(bound).toBeUndefined()
  })

  effect("is never a command or a literal, and is needed", function* () {
    const rule = "expected env:NAME or file:PATH: the key is never written into a job file"
    for (const written of ["exec:pass show key", "cGFzc3dvcmQ"]) {
      const { errors, shown } = yield* load(jobOf(`{ key: "${written}" }`))
      expect(errors).toHaveLength(1)
      expect(errors[0]).toContain(rule)
      expect(shown).not.toContain(written)
    }
    const { errors } = yield* load(jobOf("{ columns: {} }"))
    expect(errors[0]).toContain("`key`")
  })

  effect("is refused in what is appended to webhook addresses", function* () {
    const key = "5f".repeat(16) + "a7".repeat(16)
    const source = jobOf("{ key: env:KEY }").replace(
      "engines: [bank:website]",
      `engines: [{ reference: bank:website, hooks_extra_data: { tag: "x${key}" } }]`,
    )
    const { errors } = yield* load(source, { environment: { KEY: key } })
    expect(errors[0]).toContain("contains the key of the pseudonyms")
  })
})

effect("a job with pseudonyms is not named after a customer, since every run_id is published", function* () {
  for (const name of ["acme-17", "eu-acme-17-daily", "globex"]) {
    const { errors } = yield* load(jobOf("{ key: env:KEY }", name), { environment: { KEY: "k" } })
    expect(errors).toHaveLength(1)
    expect(errors[0]).toMatch(/^job\.yaml:1:\d+: the name contains the id of a customer/)
  }
  const { errors } = yield* load(jobOf("{ key: env:KEY }", "acme"), { environment: { KEY: "k" } })
  expect(errors).toEqual([])
})
