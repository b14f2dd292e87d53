/**
 * A reader of Delta logs of its own, written from the protocol and strict where it says "must": for tests that ask
 * what a log says, in the order in which any reader would find it out.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { DuckDBInstance } from "@duckdb/node-api"

interface Snapshot {
  readonly version: number
  readonly columns: ReadonlyArray<string>
  /** Relative to the folder of the table. */
  readonly paths: ReadonlyArray<string>
}

type Fields = Readonly<Record<string, unknown>>

const must = (holds: boolean, what: string): void => {
  if (!holds) throw new Error(what)
}

const checkpointActions = async (path: string): Promise<ReadonlyArray<Fields>> => {
  const instance = await DuckDBInstance.create(":memory:")
  const connection = await instance.connect()
  const read = await connection.runAndReadAll(
    `SELECT to_json(c)::VARCHAR AS row FROM read_parquet('${path}') AS c`,
  )
  connection.closeSync()
  instance.closeSync()
  return read.getRows().map(([row]) => {
    const found = Object.entries(JSON.parse(String(row)) as Fields).filter(([, value]) => value !== null)
    return Object.fromEntries(found)
  })
}

const commitActions = (path: string): ReadonlyArray<Fields> => {
  const text = readFileSync(path, "utf8")
  must(text.endsWith("\n"), `${path} is torn`)
  return text
    .slice(0, -1)
    .split("\n")
    .map((line) => JSON.parse(line) as Fields)
}

const known = new Set(["commitInfo", "protocol", "metaData", "add", "remove"])

/** The table at a version, the newest if none is given; it throws where a reader would. */
export const snapshotOf = async (table: string, version?: number): Promise<Snapshot> => {
  const folder = join(table, "_delta_log")
  const names = readdirSync(folder)
  const versions = (pattern: RegExp) =>
    names
      .flatMap((name) => pattern.exec(name)?.[1] ?? [])
      .map(Number)
      .toSorted((a, b) => a - b)
  const commits = versions(/^(\d{20})\.json$/)
  const last = version ?? commits.at(-1) ?? -1
  must(commits.includes(last), `there is no version ${last}`)
  const checkpoint = versions(/^(\d{20})\.checkpoint\.parquet$/).findLast((one) => one <= last)
  const name = (one: number, ending: string) => join(folder, `${String(one).padStart(20, "0")}.${ending}`)
  const files = new Set<string>()
  let metaData: Fields | undefined
  let protocol: Fields | undefined
  const apply = (actions: ReadonlyArray<Fields>): void => {
    const named = new Set<string>()
    for (const action of actions) {
      const [[kind = "", value] = []] = Object.entries(action)
      must(Object.keys(action).length === 1 && known.has(kind), `an action has ${Object.keys(action).join()}`)
      const { path, partitionValues } = value as Fields
      if (kind === "protocol") protocol = value as Fields
      if (kind === "metaData") {
        must(!named.has(kind), "a version describes its table twice")
        named.add(kind)
        metaData = value as Fields
      }
      if (kind !== "add" && kind !== "remove") continue
      must(!named.has(`${kind} ${String(path)}`), `a version names ${String(path)} twice`)
      named.add(`${kind} ${String(path)}`)
      if (kind === "add") {
        must(
          typeof partitionValues === "object" && partitionValues !== null,
          "a file has no partition values",
        )
        files.add(decodeURI(String(path)))
      } else must(files.delete(decodeURI(String(path))), `${String(path)} is removed and was not there`)
    }
  }
  if (checkpoint !== undefined) apply(await checkpointActions(name(checkpoint, "checkpoint.parquet")))
  for (let one = (checkpoint ?? -1) + 1; one <= last; one += 1) {
    must(commits.includes(one), `version ${one} is missing`)
    apply(commitActions(name(one, "json")))
  }
  must(protocol?.["minReaderVersion"] === 1, "no reader may read it")
  const schema = JSON.parse(String(metaData?.["schemaString"])) as {
    readonly fields: ReadonlyArray<{ readonly name: string; readonly type: unknown }>
  }
  const columns = schema.fields.map(({ name: column, type }) => `${column} ${JSON.stringify(type)}`)
  return { version: last, columns, paths: [...files].toSorted() }
}
