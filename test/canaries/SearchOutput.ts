/**
 * Looks for secrets in everything that commands left: each file of an output folder byte by byte, every cell of the
 * published database and of each Parquet file, whatever they are compressed with, and what was shown.
 */
import { globSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { DuckDBInstance } from "@duckdb/node-api"
import { needlesOf, type Canary } from "./Echo.ts"

export interface Text {
  readonly where: string
  readonly text: string
}

export interface Leak {
  readonly where: string
  readonly secret: string
  readonly around: string
}

/** Bytes as Latin-1, so that none is lost; what is UTF-8 in them is looked for in UTF-8. */
export const filesIn = (folder: string): ReadonlyArray<Text> =>
  globSync("**/*", { cwd: folder })
    .filter((path) => statSync(join(folder, path)).isFile())
    .map((path) => ({ where: path, text: readFileSync(join(folder, path)).toString("latin1") }))

const cellsOf = async (
  name: string,
  query: (sql: string) => Promise<ReadonlyArray<Readonly<Record<string, unknown>>>>,
): Promise<Text> => {
  const rows = await query(`SELECT to_json(t)::VARCHAR AS row FROM ${name} AS t`)
  const text = rows.map(({ row }) => JSON.stringify(JSON.parse(String(row)))).join("\n")
  return { where: name, text: Buffer.from(text).toString("latin1") }
}

/** Every row of every table and view, how they are kept included, and of every Parquet file. */
export const tablesIn = async (folder: string): Promise<ReadonlyArray<Text>> => {
  const instance = await DuckDBInstance.create(join(folder, "nightjar.duckdb"), { access_mode: "READ_ONLY" })
  const connection = await instance.connect()
  try {
    const query = async (sql: string) => (await connection.runAndReadAll(sql)).getRowObjectsJson()
    const tables = await query(
      "SELECT table_schema AS schema, table_name AS name FROM information_schema.tables ORDER BY ALL",
    )
    const parquet = globSync("**/*.parquet", { cwd: folder })
    const names = [
      ...tables.map(({ schema, name }) => `"${String(schema)}"."${String(name)}"`),
      ...parquet.map((path) => `read_parquet('${join(folder, path)}', hive_partitioning = false)`),
    ]
    const texts: Array<Text> = []
    for (const name of names) texts.push(await cellsOf(name, query))
    return texts
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

const aroundLength = 60
/** Every needle is longer. */
const headLength = 8

/** One pass over each text, whatever the number of needles: their heads tell where one may begin. */
export const searchFor = (
  canaries: ReadonlyArray<Canary>,
  texts: ReadonlyArray<Text>,
): ReadonlyArray<Leak> => {
  const byHead = Map.groupBy(
    canaries.flatMap((canary) =>
      needlesOf(canary).map((needle) => ({
        secret: canary.secret,
        needle: Buffer.from(needle).toString("latin1"),
      })),
    ),
    ({ needle }) => needle.slice(0, headLength),
  )
  const leaks = new Map<string, Leak>()
  for (const { where, text } of texts) {
    for (let at = 0; at + headLength <= text.length; at++) {
      for (const { secret, needle } of byHead.get(text.slice(at, at + headLength)) ?? []) {
        if (!text.startsWith(needle, at)) continue
        const around = text.slice(Math.max(0, at - aroundLength), at + needle.length)
        leaks.set(`${where} ${needle}`, { where, secret, around })
      }
    }
  }
  return [...leaks.values()]
}
