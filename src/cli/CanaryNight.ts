/**
 * `doctor --canary`: a small night of this very installation, in a folder of its own that is removed
 * afterwards, against a service that repeats every secret; then everything that was written, shown or sent is
 * searched for them. What has to be found there, a text in the records, proves that the search works.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { Duration, Effect, FileSystem, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { identifier } from "../base/SqlText.ts"
import { counted } from "../base/Counted.ts"
import { bytesText } from "../base/BytesText.ts"
import { findIn, makeCanaries } from "./Canaries.ts"
import type { Canaries, Finding, Written } from "./Canaries.ts"
import { openCanaryService } from "./CanaryService.ts"
import type { CanaryService } from "./CanaryService.ts"
import { failed, ok } from "./Check.ts"
import type { Check } from "./Check.ts"
import { Wiring } from "./Wiring.ts"

/** Each takes two or three seconds on a machine with nothing else to do. */
const commandTime = Duration.seconds(60)
/** Of each stream of a command; a night shows some kilobytes. */
const shownBytesMax = 16_000_000
/** Findings that are named. */
const told = 5
const what = "canary"

const jobText = (origin: string): string => `name: canary
service: { base_url: "${origin}/api", flows_url: "${origin}/flows", app_secret: env:CANARY_APPLICATION }
tokens: { key: env:CANARY_STORE_KEY }
telemetry: { otlp: "${origin}/collector", customer_ids: true }
notify: [{ on: [failed, new_trouble], url: env:CANARY_RECEIVER }]
polling: { min: 100 millis, max: 300 millis }
execution: { max_wait: 20 seconds }
retry: { max_attempts: 1, base: 100 millis, max: 200 millis }
flow_results: { wait_final: 1 second }
engines: [sandbox-bank:website]
customers:
  - id: c-fine
    tokenized_access: true
    parameters: { username: queue-1+run-1+records-3, password: env:CANARY_PASSWORD }
  - id: c-rejected
    parameters: { username: queue-1+run-1+end-INCORRECT_CREDENTIALS, password: env:CANARY_REJECTED }
`

/** Settings that would send the night elsewhere do not reach it. */
const environmentOf = (canaries: Canaries, origin: string, folder: string) => ({
  NIGHTJAR_BASE_URL: undefined,
  NIGHTJAR_FLOWS_URL: undefined,
  NIGHTJAR_APP_SECRET: undefined,
  NIGHTJAR_OUTPUT: undefined,
  TMPDIR: join(folder, "temporary"),
  CANARY_APPLICATION: canaries.application.value,
  CANARY_STORE_KEY: canaries.storeKey.value,
  CANARY_PASSWORD: canaries.password.value,
  CANARY_REJECTED: canaries.rejected.value,
  CANARY_RECEIVER: `${origin}/receiver`,
})

const readAll = <E>(stream: Stream.Stream<Uint8Array, E>) =>
  Stream.runFold(
    stream,
    () => "",
    (text, piece) => (text.length > shownBytesMax ? text : text + Buffer.from(piece).toString("latin1")),
  )

/** This program as it was started, in a process of its own; returns its exit code and what it showed. */
const runCommand = (args: ReadonlyArray<string>, env: Record<string, string | undefined>, folder: string) =>
  Effect.gen(function* () {
    const { spawn } = yield* ChildProcessSpawner.ChildProcessSpawner
    const [, program = ""] = process.argv
    const child = ChildProcess.make(process.execPath, [...process.execArgv, program, ...args], {
      cwd: folder,
      env,
      extendEnv: true,
      stdin: "ignore",
      forceKillAfter: "1 second",
    })
    const handle = yield* spawn(child)
    const [stdout, stderr, code] = yield* Effect.all(
      [readAll(handle.stdout), readAll(handle.stderr), handle.exitCode],
      { concurrency: "unbounded" },
    )
    const name = `\`${args[0]}\``
    const shown: ReadonlyArray<Written> = [
      { where: `what ${name} printed`, text: stdout },
      { where: `what ${name} said on stderr`, text: stderr },
    ]
    return { code: Number(code), shown, stderr }
  }).pipe(
    Effect.scoped,
    Effect.mapError(({ message }) => message),
    Effect.timeoutOrElse({
      duration: commandTime,
      orElse: () =>
        Effect.fail(`\`${args[0]}\` did not end within ${Duration.toSeconds(commandTime)} seconds`),
    }),
  )

/** What the machine refuses, such as a full disk, is why the night did not come to its end. */
const onDisk = <A>(act: () => A): Effect.Effect<A, string> =>
  Effect.try({ try: act, catch: (cause) => (cause instanceof Error ? cause.message : String(cause)) })

const filesIn = (folder: string): ReadonlyArray<Written> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()
    .map((path) => ({ where: relative(folder, path), text: readFileSync(path).toString("latin1") }))

/** Every row of every table and of every Parquet file: there the bytes are compressed. */
const tablesIn = Effect.fnUntraced(function* (output: string, parquet: ReadonlyArray<string>) {
  const { DuckDb } = yield* Effect.promise(() => import("../base/DuckDb.ts"))
  const { open } = yield* DuckDb
  const connection = yield* open({ path: join(output, "nightjar.duckdb"), access: "read-only" })
  const rowsOf = (where: string, source: string, parameters: ReadonlyArray<string> = []) =>
    Effect.map(
      connection.rows(`SELECT to_json(t)::VARCHAR AS line FROM ${source} AS t`, parameters),
      (rows): Written => ({
        where,
        text: Buffer.from(rows.map(({ line }) => String(line)).join("\n")).toString("latin1"),
      }),
    )
  const names = yield* connection.rows("SELECT table_name AS name FROM duckdb_tables() ORDER BY ALL")
  const tables = names.map(({ name }) => rowsOf(`the table ${String(name)}`, identifier(String(name))))
  const files = parquet.map((path) =>
    rowsOf(`the rows of ${relative(output, path)}`, "read_parquet(?, hive_partitioning = false)", [path]),
  )
  return yield* Effect.all([...tables, ...files])
}, Effect.scoped)

/** Everything that the night left, in all forms. */
const writtenIn = Effect.fnUntraced(function* (folder: string, shown: ReadonlyArray<Written>) {
  const wiring = yield* Wiring
  const files = yield* onDisk(() => filesIn(folder))
  const parquet = files.map(({ where }) => join(folder, where)).filter((path) => path.endsWith(".parquet"))
  const tables = yield* tablesIn(join(folder, "output"), parquet).pipe(
    Effect.provide(wiring.database),
    Effect.mapError(({ message }) => message),
  )
  return { files: files.length, tables: tables.length, all: [...files, ...tables, ...shown] }
})

/** Where records are kept as they arrived. */
const controlled = ["landing/", "the table ", "the rows of "]

const judge = (
  written: { readonly files: number; readonly tables: number; readonly all: ReadonlyArray<Written> },
  canaries: Canaries,
  service: CanaryService,
): Check => {
  const { control, ...planted } = canaries
  const secrets = [...Object.values(planted), ...service.issued.values()]
  const found = written.all.flatMap((one) => findIn(one, secrets))
  const [first] = found
  if (first !== undefined)
    return failed(what, "canary-found", { findings: findingsText(found), more: moreText(found) })
  const kept = written.all.flatMap((one) => findIn(one, [control]))
  const unseen = controlled.filter((place) => !kept.some(({ where }) => where.includes(place)))
  if (unseen.length > 0 || service.echoes() === 0 || service.sent.length === 0)
    return failed(what, "canary-blind")
  const bytes = written.all.reduce((sum, { text }) => sum + text.length, 0)
  return ok(
    what,
    `${counted(secrets.length, "secret")} planted in a test night whose service repeated them in ` +
      `${counted(service.echoes(), "answer")}; none was found in ${counted(written.files, "file")}, ` +
      `${counted(written.tables, "table")}, the output and what was sent (${bytesText(bytes)} searched)`,
  )
}

const findingsText = (found: ReadonlyArray<Finding>): string =>
  found
    .slice(0, told)
    .map(({ is, where }) => `${is} in ${where}`)
    .join("; ")
const moreText = (found: ReadonlyArray<Finding>): string =>
  found.length > told ? ` (and ${found.length - told} more)` : ""

/** The commands of the canary's user, with the exit codes that they end with: a login is rejected. */
const commands = [
  { args: ["run", "job.yaml", "--output", "output", "--log-level", "debug"], expected: 3 },
  { args: ["explain", "c-fine", "--output", "output", "--json"], expected: 0 },
] as const

const runAll = (environment: Record<string, string | undefined>, folder: string) =>
  Effect.forEach(commands, ({ args, expected }) =>
    Effect.flatMap(runCommand(args, environment, folder), ({ code, shown, stderr }) => {
      if (code === expected) return Effect.succeed(shown)
      const [said = ""] = /^nightjar: .*$/m.exec(stderr) ?? []
      return Effect.fail(`\`${args[0]}\` ended with exit code ${code}${said === "" ? "" : `, ${said}`}`)
    }),
  )

const makeFolder = Effect.flatMap(FileSystem.FileSystem, (files) =>
  files.makeTempDirectoryScoped({ prefix: "nightjar-canary-" }),
).pipe(Effect.mapError(({ message }) => message))

const writeJob = (folder: string, origin: string) =>
  Effect.flatMap(FileSystem.FileSystem, (files) =>
    Effect.andThen(
      files.makeDirectory(join(folder, "temporary")),
      files.writeFileString(join(folder, "job.yaml"), jobText(origin)),
    ),
  ).pipe(Effect.mapError(({ message }) => message))

const tried = Effect.gen(function* () {
  const folder = yield* makeFolder
  const canaries = yield* makeCanaries
  const service = yield* openCanaryService(canaries).pipe(Effect.mapError(({ message }) => message))
  yield* writeJob(folder, service.origin)
  const shown = yield* runAll(environmentOf(canaries, service.origin, folder), folder)
  return judge(yield* writtenIn(folder, [...shown.flat(), ...service.sent]), canaries, service)
}).pipe(Effect.scoped)

/** One line of `doctor`. Never fails. */
export const canaryCheck = tried.pipe(
  Effect.catch((detail) => Effect.succeed(failed(what, "canary-unfinished", { detail }))),
)
