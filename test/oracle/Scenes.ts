/**
 * What happens in the output folder of a seed, and what is read of it afterwards: jobs as YAML, the nights and commands
 * of one of six kinds, then every table, every Parquet file, the manifest and what commands say.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { identifier } from "../../src/base/DuckDbFailed.ts"
import { features } from "../../src/service/Vocabulary.ts"
import { filesBelow, layoutOf } from "../../src/tables/Manifest.ts"
import { parquetDifferences } from "../faults/PublishedTables.ts"
import type { Ended } from "../harness/CommandsHere.ts"
import type { PlantedServices } from "../simulation/NightLayers.ts"
import { seeded } from "../simulation/NightPlan.ts"
import { behaviour, pick } from "../simulation/SimulatedJob.ts"
import { FolderNights, type Step } from "./FolderNights.ts"
import { lines, normalised, type Texts } from "./Texts.ts"

interface Scene {
  /** What its jobs say beside customers and engines. */
  readonly settings: string
  readonly jobs?: number
  readonly steps: ReadonlyArray<Step>
}

const command = (args: string): Step => ({ what: "command", args })
const pseudonyms =
  "pseudonyms: { key: env:PSEUDONYMS, columns: { customer_profiles: [name], emails: [email] } }\n"

/** One kind after the other, by seed; `n` is how often the kind had its turn. */
const kinds: ReadonlyArray<(n: number) => Scene> = [
  // A night that is killed, and a rerun.
  (n) => ({
    settings: n % 2 === 0 ? "exit_on: new\n" : "after_export: keep\n",
    steps: [
      { what: "run", crashes: [12 + 9 * n, 40] },
      { what: n % 2 === 0 ? "rerun" : "new", day: 0, hour: 5 },
    ],
  }),
  // A gate holds a night back: a person lets it through, or it stays beside what is published.
  (n) => ({
    settings: n % 2 === 0 ? "gates: { coverage: 100% }\n" : "",
    steps:
      n % 2 === 0
        ? [{ what: "run" }, { what: "accept", hour: 9 }]
        : [{ what: "run" }, { what: "run", day: 1, settings: "gates: { coverage: 100%, rejected: 0% }\n" }],
  }),
  // Pseudonyms from the first night, or from a rebuild on.
  (n) => ({
    settings: n % 2 === 0 ? pseudonyms : "",
    steps: [
      { what: "run" },
      ...(n % 2 === 0
        ? [command("forget c-0001 --yes --here-only --json")]
        : [{ ...command("rebuild --job JOB --json"), settings: pseudonyms }]),
    ],
  }),
  // A customer is forgotten.
  (n) => ({
    settings: "",
    steps: [
      { what: "run" },
      command(`forget c-0001 --dry-run${n % 2 === 0 ? " --json" : ""}`),
      command(`forget c-0001 --yes --here-only${n % 2 === 0 ? "" : " --json"}`),
    ],
  }),
  // Two jobs beside each other, and back to the version of the first.
  (n) => ({
    jobs: 2,
    settings: "concurrency: { max_in_flight: 3, per_engine: 2 }\n",
    steps: [
      { what: "run", crashes: n % 2 === 0 ? [] : [50] },
      command("rollback --json"),
      ...(n % 2 === 0 ? [] : [command("rollback")]),
    ],
  }),
  // Versions while the run goes on; later its month is compacted, and what it landed pruned.
  (n) => ({
    settings: "publish: { every: 10 minutes }\nretain: { landing: 30 days, ledger: 60 days }\n",
    steps: [
      { what: "run" },
      { ...command(n % 2 === 0 ? "compact --json" : "compact"), day: 80 },
      command(n % 2 === 0 ? "prune JOB" : "prune JOB --json"),
    ],
  }),
]

/** Always, for they read the most; of `looks`, each seed has some. */
const everywhere = ["status --json", "runs --json", "verify --json", "tables --json"]
const looks = `status; runs; runs NEWEST; runs NEWEST --json; explain RECORDS_SHORT --json; verify; tables;
  tables executions --json; tables --format odcs; tables --format dbt; report --json; documents --json;
  pseudonyms --json; pseudonyms c-0002; infer; infer --json; query --list; query @coverage;
  query @who_must_act --json; query SELECT_RUNS --format csv; prune --dry-run --json; prune --dry-run;
  compact --dry-run --older-than 1_day --json; rebuild --dry-run --json; credentials list;
  credentials list --json; doctor; doctor --json; plan JOB; plan JOB --json; validate JOB;
  validate JOB --json; schedule JOB --cron --at 22:30; schedule JOB --kubernetes --at 22:30 --json;
  limit max_in_flight=3 --json; pause; accept; rollback; explain LOGIN_UNPROVEN --json;
  explain no-earlier-version; backup BACKUP --json; engines list --json;
  engines show sandbox-tax:website; tables no_such_table`
  .split(";")
  .map((one) => one.trim())
const shares = 5
const names = ["nightly", "second"]

const engines = ["sandbox-bank:website", "sandbox-tax:website"]

/** Customers with data in every night: without it, no table would tell anything. */
const whole = [
  "ok+queue-10+run-60+records-24+attach-1",
  "ok+queue-10+run-90+records-12",
  "ok+queue-20+run-30+records-10+odd",
]

/** They, and customers of every behaviour, on engines that have most of what there is to read. */
const jobText = (seed: number, index: number, settings: string): string => {
  const random = seeded(seed * 31 + index)
  const chosen = [...engines, pick(random, ["sandbox-always:website", "sandbox-maintenance:website"])]
  const asked = features.filter(
    (code, place) => place % 6 === seed % 6 || code === "customer_information_read",
  )
  const customers = Array.from({ length: 5 }, (_, place) => {
    const id = `c-${String(index * 100 + place + 1).padStart(4, "0")}`
    const words = whole[place] ?? behaviour(random)
    const engine = place === 4 ? chosen[2] : chosen[place % 2]
    return `  - { id: ${id}, engines: ["${engine}"], parameters: { username: "${words}+customer-${id}", password: a-secret-password } }`
  })
  return [
    `name: ${names[index]}`,
    `service: { sandbox: { seed: ${seed} } }`,
    "timezone: Europe/Madrid",
    "execution: { max_wait: 2 hours }",
    // Each further table makes every version dearer.
    seed % 6 === 0
      ? ""
      : `record_schemas: [${pick(random, ["accounts, cards", "yearly_individual_tax", "loans"])}]`,
    settings +
      "notify: [{ url: env:ALERT_URL, on: [failed, late, new_trouble, recovered] }, { ping: env:PING_URL }]",
    `engines:\n${chosen.map((engine) => `  - { reference: "${engine}", features: [${seed % 12 < 6 ? "" : asked.join(", ")}] }`).join("\n")}`,
    `customers:\n${customers.join("\n")}\n`,
  ].join("\n")
}

const ended = (asked: string, { code, stdout, stderr }: Ended): string =>
  `$ nightjar ${asked}\n${stdout}--- stderr\n${stderr}\n--- exit ${code}\n`

const sortedRows = (columns: ReadonlyArray<unknown>, rows: ReadonlyArray<ReadonlyArray<unknown>>): string =>
  `${lines([columns])}\n${rows
    .map((row) => lines([row]))
    .toSorted()
    .join("\n")}`

/** Every table and view that somebody reads, with all its rows; an age is another one each day. */
const readTables = Effect.fnUntraced(function* (output: string) {
  const connection = yield* (yield* DuckDb).open({
    path: join(output, "nightjar.duckdb"),
    access: "read-only",
    threads: 1,
  })
  const names = yield* connection.rows(
    `SELECT table_schema AS schema, table_name AS name FROM information_schema.tables
     WHERE table_schema <> 'store' ORDER BY ALL`,
  )
  const texts: Array<readonly [string, string]> = []
  for (const { schema, name } of names) {
    const place = [schema, name].map((one) => identifier(String(one))).join(".")
    const { columns, rows } = yield* connection.query(
      `SELECT COLUMNS(lambda name: name <> 'age_days') FROM ${place}`,
    )
    texts.push([`table ${String(schema)}.${String(name)}`, sortedRows(columns, rows)])
  }
  return texts
}, Effect.scoped)

const ofRuns = (output: string, ending: RegExp): string =>
  filesBelow(join(output, "runs"))
    .filter((path) => ending.test(path))
    .map((path) => `${path}\n${readFileSync(join(output, "runs", path), "utf8")}`)
    .join("\n")

export const textsOfFolder = async (seed: number, plant?: PlantedServices): Promise<Texts> => {
  const texts = new Map<string, string>()
  const nights = new FolderNights(seed, plant)
  const put = (aspect: string, text: string) => texts.set(aspect, normalised(text, nights.work))
  try {
    await nights.begin()
    const scene = kinds[seed % kinds.length]?.(Math.floor(seed / kinds.length))
    if (scene === undefined) throw new Error(`no scene for ${seed}`)
    const load = (settings: string) =>
      Promise.all(
        names
          .slice(0, scene.jobs ?? 1)
          .map((name, index) => nights.job(name, jobText(seed, index, settings))),
      )
    const wordsOf = (asked: string) => asked.split(" ").map((word) => meant.get(word) ?? word)
    const meant = new Map([
      ["JOB", nights.pathOf("nightly")],
      ["BACKUP", join(nights.work, "backup")],
      ["SELECT_RUNS", "SELECT run_id, job, tasks FROM ops.runs ORDER BY 1"],
      ["1_day", "1 day"],
    ])
    let jobs = await load(scene.settings)
    for (const [index, step] of scene.steps.entries()) {
      if (step.settings !== undefined) jobs = await load(step.settings)
      nights.waitFor(step)
      const told =
        step.what === "command" ? await nights.command(wordsOf(step.args)) : await nights.run(step, jobs)
      const asked = step.what === "command" ? step.args : step.what
      put(`step ${index + 1} ${asked}`, ended(asked, told))
    }
    const { output } = nights
    put("facts", lines(nights.facts()))
    put("notices", nights.notices.join("\n"))
    put("manifest", readFileSync(layoutOf(output).manifest, "utf8"))
    put("summaries", ofRuns(output, /summary\.json$/))
    put("reports", ofRuns(output, /(report\.html|worklist\.csv)$/))
    put("files", filesBelow(output).toSorted().join("\n"))
    for (const [aspect, text] of await Effect.runPromise(Effect.provide(readTables(output), DuckDb.layer)))
      put(aspect, text)
    put("parquet", (await parquetDifferences(output)).join("\n"))
    meant.set("NEWEST", readdirSync(join(output, "runs")).toSorted().at(-1) ?? "")
    for (const asked of [...everywhere, ...looks.filter((_, place) => place % shares === seed % shares)])
      put(asked, ended(asked, await nights.command(wordsOf(asked))))
    return texts
  } finally {
    nights.remove()
  }
}
