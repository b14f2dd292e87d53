/**
 * Twenty questions of an analyst, one SQL file each in `questions/`, with their answers over ten nights that were
 * published for real. The tables have to answer each of them with one join at most.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Effect, Exit, Scope } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { dbtSources } from "../../src/tables/DataContract.ts"
import { dbtStatements } from "../tables/DbtTests.ts"
import { families } from "../records/families.ts"
import { publishTenNights } from "./TenNights.ts"

const folder = new URL("questions/", import.meta.url)
const root = mkdtempSync(join(tmpdir(), "nightjar-questions-"))

/** A question in the first line, one query, and its rows in comments, each as its values in their order. */
const questions = readdirSync(folder)
  .toSorted()
  .map((file) => {
    const text = readFileSync(new URL(file, folder), "utf8").trimEnd()
    const [query = "", answer = ""] = text.split("\n-- Answer:")
    const rows = answer
      .split("\n")
      .flatMap((line) => (line.startsWith("-- ") ? [line.slice("-- ".length)] : []))
    return { file, question: text.split("\n", 1)[0]?.replace("-- ", "") ?? "", query, rows }
  })

const scope = Scope.makeUnsafe()
/** Opened once: that costs more than the answers. */
const database = Effect.flatMap(DuckDb, (duckdb) =>
  duckdb.open({ path: join(root, "nightjar.duckdb"), access: "read-only" }),
).pipe(Effect.provide(DuckDb.layer), Scope.provide(scope), Effect.cached, Effect.runSync)
const answerOf = (sql: string, values: ReadonlyArray<string> = []) =>
  Effect.runPromise(Effect.flatMap(database, (connection) => connection.rows(sql, values)))

const shown = (value: unknown): string =>
  value instanceof Date
    ? value.toISOString().slice(0, 10)
    : Array.isArray(value)
      ? value.join(", ")
      : String(value)

beforeAll(() => publishTenNights(root), 600_000)
afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  rmSync(root, { recursive: true, force: true })
})

describe("an analyst", () => {
  it("asks twenty questions, each in a sentence", () => {
    expect(questions.map(({ question }) => /^[A-Z].{15,110}\?$/.test(question))).toEqual(
      Array.from({ length: 20 }, () => true),
    )
  })

  it("finds that the keys, relations and lists of values hold that a dbt project is told of", async () => {
    const statements = dbtStatements(dbtSources(families, () => true, "0.1.0").sources)
    expect(statements.length).toBeGreaterThan(150)
    for (const { test, sql } of statements) expect([test, await answerOf(sql)]).toEqual([test, []])
  })

  it.each(questions)(
    "is answered, with one join at most and no query within another: $question",
    async ({ query, rows }) => {
      const found = await answerOf(query)
      expect(found.map((row) => Object.values(row).map(shown).join(" | "))).toEqual(rows)
      const [row] = await answerOf("SELECT json_serialize_sql(CAST(? AS VARCHAR)) AS parsed", [query])
      const parsed = JSON.stringify(row?.["parsed"]).replaceAll("\\", "")
      expect(parsed).toContain('"error":false')
      expect(parsed.match(/"type":"JOIN"/g)?.length ?? 0).toBeLessThan(2)
      expect(parsed).not.toContain('"type":"SUBQUERY"')
    },
  )
})
