/**
 * How fast records become tables: ours (checked, what does not fit kept beside, history, Parquet and database) beside
 * DuckDB alone, which makes the same tables of whatever it reads, and beside the script that a user would write. All in
 * this one run, each in a process of its own.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import type { Benchmark, Figure } from "./Figure.ts"
import { rowsOfProfiles } from "./ProfileBodies.ts"

const Took = Schema.Struct({
  parquet: Schema.optionalKey(Schema.Finite),
  database: Schema.Finite,
  cpu: Schema.Finite,
  rows: Schema.Record(Schema.String, Schema.Int),
  peak_mb: Schema.NullOr(Schema.Finite),
})
type Took = typeof Took.Type
const decodeTook = Schema.decodeUnknownSync(Schema.fromJsonString(Took))

const contestant = fileURLToPath(new URL("dataContestant.ts", import.meta.url))

const inProcess = (name: string, folder: string, profiles: number): string => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [contestant, name, folder, String(profiles)],
    { encoding: "utf8", maxBuffer: 1_000_000 },
  )
  if (status !== 0) throw new Error(`${name} with ${profiles} profiles ended with ${status}: ${stderr}`)
  return stdout
}

interface Round {
  readonly profiles: number
  readonly ours: Took
  readonly limit: Took
  readonly script: Took
}

const roundOf = (profiles: number): Round => {
  const folder = mkdtempSync(join(tmpdir(), "bench-data-"))
  try {
    inProcess("prepare", folder, profiles)
    const took = (name: string) => decodeTook(inProcess(name, folder, profiles))
    return { profiles, limit: took("limit"), script: took("script"), ours: took("ours") }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const aims = { ofDuckDb: "0.5 x", script: "4 x", peak: "700 MB", flat: "at most 1.1 x" }

const figuresOf = ({ profiles, ours, limit, script }: Round): ReadonlyArray<Figure> => {
  const of = `${profiles.toLocaleString("en")} profiles`
  const rate = (name: string, peerName: string, aim: string, seconds: (took: Took) => number | undefined) => {
    const per = (took: Took) => profiles / (seconds(took) ?? Number.NaN)
    const peer = { name: peerName, value: per(peerName === "the script" ? script : limit) }
    return { name: `${of}, ${name}`, value: per(ours), unit: "profiles/s", peer, aim }
  }
  return [
    rate("by CPU", "DuckDB alone", aims.ofDuckDb, ({ cpu }) => cpu),
    rate("by wall", "DuckDB alone", aims.ofDuckDb, ({ database }) => database),
    rate("to Parquet", "DuckDB alone", aims.ofDuckDb, ({ parquet }) => parquet),
    rate("beside a script", "the script", aims.script, ({ database }) => database),
    { name: `${of}, peak memory`, value: ours.peak_mb ?? Number.NaN, unit: "MB", aim: aims.peak },
  ]
}

const complaintsOf = ({ profiles, ours, limit, script }: Round): ReadonlyArray<string> =>
  Object.entries(rowsOfProfiles(profiles)).flatMap(([table, expected]) =>
    Object.entries({ ours, script, limit }).flatMap(([name, { rows }]) =>
      rows[table] === expected ? [] : [`${name}: ${rows[table] ?? 0} of ${expected} rows in ${table}`],
    ),
  )

export const data: Benchmark = {
  name: "data",
  about: "records a second, from landed bodies to Parquet and database, beside DuckDB alone and a script",
  run: async ({ sample }) => {
    const rounds = (sample ? [2_000] : [200_000, 1_000_000]).map(roundOf)
    const [first, last] = [rounds[0], rounds.at(-1)]
    const cost = ({ ours, profiles }: Round) => (ours.cpu * 1_000_000) / profiles
    return {
      figures: [
        ...rounds.flatMap(figuresOf),
        ...(first === undefined || last === undefined || first === last
          ? []
          : [
              {
                name: "CPU of a profile",
                value: cost(last),
                unit: "µs",
                peer: { name: `of ${first.profiles.toLocaleString("en")}`, value: cost(first) },
                aim: aims.flat,
              },
            ]),
      ],
      complaints: rounds.flatMap(complaintsOf),
    }
  },
}
