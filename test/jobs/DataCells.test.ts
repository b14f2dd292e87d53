/** Cells of customers files are data: nothing that somebody typed into one is ever looked up, opened or run. */
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { env, jobFrom, literal, load, notWhole, smallJob } from "./loading.ts"
import { effect } from "../harness/Steps.ts"

const file = (path: string) => ({ _tag: "Reference", reference: { _tag: "File", path } })

interface Assigned {
  readonly login: { readonly parameters: unknown }
}

/** The logins of a file's customers, and what was complained about. */
const loginsOf = Effect.fnUntraced(function* (content: string, references?: string, name = "c.csv") {
  const { job, errors, warnings } = yield* load(jobFrom(name, references), { files: { [name]: content } })
  const { assignments = [] } = { ...(job as { readonly assignments?: ReadonlyArray<Assigned> } | undefined) }
  return { parameters: assignments.map(({ login }) => login.parameters), errors, warnings }
})

const typed = ["exec:touch X", "env:SERVICE_APP_SECRET", "file:/etc/hostname"]

describe("a cell of a customers file", () => {
  effect("is taken literally, whatever a customer typed, and a warning says so", function* () {
    const csv = `customer_id,pin\n${typed.map((text, at) => `c-${at},${text}\n`).join("")}c-9,1234\n`
    const told =
      "3 cells look like references (env:, file: or exec:) and are sent as they are; `references: [pin]` beside " +
      "`from` would change that"
    expect(yield* loginsOf(csv)).toEqual({
      parameters: [...typed, "1234"].map((pin) => ({ pin: literal(pin) })),
      errors: [],
      warnings: [`c.csv:2:5: ${told}`],
    })
    const ndjson = '{"customer_id":"c-1","pin":{"a":["exec:x"]}}\n{"customer_id":"c-2","pin":"env:A"}\n'
    expect((yield* loginsOf(ndjson, "[]", "c.ndjson")).parameters).toEqual([
      { pin: literal({ a: ["exec:x"] }) },
      { pin: literal("env:A") },
    ])
  })

  effect("is resolved only in a column that the job lists, and never run", function* () {
    const csv = "customer_id,user,pin\nc-1,env:A,env:B\nc-2,plain,file:pins/2\n"
    expect((yield* loginsOf(csv, "[pin]")).parameters).toEqual([
      { user: literal("env:A"), pin: env("B") },
      { user: literal("plain"), pin: file("pins/2") },
    ])
    const commands = "customer_id,pin\nc-1,exec:date\nc-2,exec:touch X\nc-3,env:\n"
    expect((yield* loginsOf(commands, "[pin]")).errors).toEqual([
      "c.csv:2:5: a command is never read from a file of customers: write env:NAME or file:PATH (and 1 more in this file)",
      `c.csv:4:5: ${notWhole}`,
    ])
    // The source would get a misspelt one as a password.
    const misspelt = 'customer_id,pin\nc-1," env:A"\nc-2,ENV:B\nc-3, Exec:date\n'
    expect((yield* loginsOf(misspelt, "[pin]")).errors).toEqual([
      `c.csv:2:5: ${notWhole} (and 1 more in this file)`,
      "c.csv:4:5: a command is never read from a file of customers: write env:NAME or file:PATH",
    ])
  })

  effect(
    "[promise 12 reference cells] is a reference in such a column, or refused: anything else would be sent as a password",
    function* () {
      for (const cell of ["en:P2", "envP2", "${P2}", "vault:x", "#N/A", "NULL", " ", "rsa::YWJj"]) {
        const found = yield* load(jobFrom("c.csv", "[pin]"), {
          files: { "c.csv": `customer_id,pin\nc-1,env:A\nc-2,${cell}\nc-3,\n` },
        })
        expect(found.errors).toEqual([`c.csv:3:5: ${notWhole}`])
        expect(found.shown).not.toContain(`"${cell}`)
      }
      const ndjson = '{"customer_id":"c-1","pin":""}\n{"customer_id":"c-2","pin":null}\n'
      expect(yield* loginsOf(ndjson, "[pin]", "c.ndjson")).toMatchObject({ parameters: [{}, {}], errors: [] })
      expect((yield* loginsOf('{"customer_id":"c-1","pin":4711}\n', "[pin]", "c.ndjson")).errors).toEqual([
        `c.ndjson:1:1: ${notWhole}`,
      ])
    },
  )

  effect("needs a decision if every cell of a column looks like a reference", function* () {
    const csv = "customer_id,pin\nc-1,env:A\nc-2,env:B\n"
    expect((yield* loginsOf(csv)).errors).toEqual([
      "c.csv:2:5: every cell of `pin` looks like a reference: write `references: [pin]` beside `from`, " +
        "or `references: []` if they are to be sent as they are",
    ])
    expect((yield* loginsOf(csv, "[]")).errors).toEqual([])
  })

  effect("is in an existing column", function* () {
    const csv = "customer_id,password\nc-1,x\n"
    expect((yield* loginsOf(csv, "[pasword]")).errors).toEqual([
      expect.stringMatching(/: the file has no parameter column `pasword`; is it `password`\?$/),
    ])
    const inline = `${smallJob}customers:\n  - id: c-1\n    parameters: { pin: x }\n    references: [pin]\n`
    expect((yield* load(inline)).errors).toEqual([
      expect.stringMatching(/: `references` names columns of a file: it belongs beside `from`$/),
    ])
  })
})
