/**
 * `doctor --canary`: a small night of this installation in a temporary folder, on the embedded service, which
 * repeats what it refuses; then everything written or shown is searched for the secrets. The customers' ids,
 * which have to be found, and what was blanked prove that the search works.
 */
import { readFileSync, readdirSync } from "node:fs"
import { join, relative } from "node:path"
import { Duration, Effect, FileSystem, Random, Record, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { identifier } from "../base/DuckDbFailed.ts"
import { bytesText, counted, wordsOf } from "../base/Text.ts"
import { failed, ok, type Finding } from "./Failures.ts"
import { Wiring } from "./Wiring.ts"
import { blanked } from "../privacy/KnownSecrets.ts"

// The secrets that are planted, made up anew each time. In the middle of each are characters that nothing
// contains by chance and that survive every escaping: few needles find it in any spelling.

interface Canary {
  /** As a sentence names it. */
  readonly is: string
  readonly value: string
  /** The part that is looked for: letters and digits only. */
  readonly core: string
}

const hexDigits = (length: number) =>
  Effect.map(Effect.replicateEffect(Random.nextIntBetween(0, 15), length), (digits) =>
    digits.map((digit) => digit.toString(16)).join(""),
  )

const coreLength = 24
/** Signs that JSON, HTML, addresses and base64 spell differently. */
const makePassword = (is: string) =>
  Effect.map(hexDigits(coreLength), (core): Canary => ({ is, core, value: `Ca é"<&+/${core}~'>?ü` }))

const makeCanaries = Effect.gen(function* () {
  const key = yield* hexDigits(64)
  const encrypted = yield* hexDigits(coreLength)
  const id = yield* hexDigits(coreLength)
  const planted = {
    CANARY_STORE_KEY: { is: "the key of the token store", value: key, core: key },
    CANARY_PASSWORD: yield* makePassword("a password"),
    CANARY_REJECTED: yield* makePassword("the password of a rejected login"),
    /** The service cannot decrypt it, and repeats it in its answer (section 7). */
    CANARY_REFUSED: {
      is: "a password that the service repeats",
      value: `rsa::${encrypted}`,
      core: encrypted,
    },
  }
  /** No secret: it is found wherever customers are named. */
  return { planted, control: { is: "the control", value: id, core: id } satisfies Canary }
})
type Canaries = Effect.Success<typeof makeCanaries>

/** The characters of base64 that depend only on the core if `skipped` other bytes come before it. */
const inBase64 = (core: string, skipped: number): string => {
  const bytes = skipped + Buffer.byteLength(core)
  return Buffer.concat([Buffer.alloc(skipped), Buffer.from(core)])
    .toString("base64")
    .slice(Math.ceil((skipped * 4) / 3), Math.floor((bytes * 4) / 3))
}

const needlesOf = ({ core }: Canary): ReadonlyArray<string> => {
  const hex = Buffer.from(core).toString("hex")
  return [core, core.toUpperCase(), hex, hex.toUpperCase(), ...[0, 1, 2].map((n) => inBase64(core, n))]
}

/** Something that was written or shown, as Latin-1, so that no byte is lost. */
interface Written {
  readonly where: string
  readonly text: string
}

const latin1 = (bytes: Uint8Array | string): string => Buffer.from(bytes).toString("latin1")

const findIn = ({ where, text }: Written, canaries: ReadonlyArray<Canary>) =>
  canaries
    .filter((canary) => needlesOf(canary).some((needle) => text.includes(needle)))
    .map(({ is }) => ({ is, where }))

/** Each takes two or three seconds on a machine with nothing else to do. */
const commandTime = Duration.seconds(60)
/** Of each stream of a command; a night shows some kilobytes. */
const shownBytesMax = 16_000_000
const told = 5

/** `folder` is the canary's own: what the receiver is told is a file in it. */
const jobText = (folder: string, { control }: Canaries): string => `name: canary
service: { sandbox: { seed: 1, speed: 300 } }
tokens: { key: env:CANARY_STORE_KEY }
notify: [{ on: [failed, new_trouble], command: [tee, ${JSON.stringify(join(folder, "notice.json"))}] }]
retry: { max_attempts: 1 }
engines: [sandbox-bank:website]
customers:
  - id: fine-${control.value}
    tokenized_access: true
    parameters: { username: queue-1+run-1+records-3, password: env:CANARY_PASSWORD }
  - id: c-rejected
    parameters: { username: queue-1+run-1+end-INCORRECT_CREDENTIALS, password: env:CANARY_REJECTED }
  - id: c-refused
    parameters: { username: queue-1+run-1, password: env:CANARY_REFUSED }
`

/** Settings that would send the night elsewhere do not reach it. */
const environmentOf = ({ planted }: Canaries, folder: string) => ({
  NIGHTJAR_BASE_URL: undefined,
  NIGHTJAR_FLOWS_URL: undefined,
  NIGHTJAR_APP_SECRET: undefined,
  NIGHTJAR_OUTPUT: undefined,
  TMPDIR: join(folder, "temporary"),
  ...Record.map(planted, ({ value }) => value),
})

const readAll = <E>(stream: Stream.Stream<Uint8Array, E>) =>
  Stream.runFold(
    stream,
    () => "",
    (text, piece) => (text.length > shownBytesMax ? text : text + latin1(piece)),
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

const filesIn = (folder: string): ReadonlyArray<Written> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()
    .map((path) => ({ where: relative(folder, path), text: latin1(readFileSync(path)) }))

/** Every row of every table and of every Parquet file: there the bytes are compressed. */
const tablesIn = Effect.fnUntraced(function* (output: string, parquet: ReadonlyArray<string>) {
  const { DuckDb } = yield* Effect.promise(() => import("../base/DuckDb.ts"))
  const { open } = yield* DuckDb
  const connection = yield* open({ path: join(output, "nightjar.duckdb"), access: "read-only" })
  const rowsOf = (where: string, source: string, parameters: ReadonlyArray<string> = []) =>
    Effect.map(
      connection.rows(`SELECT to_json(t)::VARCHAR AS line FROM ${source} AS t`, parameters),
      (rows): Written => ({ where, text: latin1(rows.map(({ line }) => String(line)).join("\n")) }),
    )
  const named = yield* connection.rows("SELECT schema_name, table_name FROM duckdb_tables() ORDER BY ALL")
  const tables = named.map(({ schema_name, table_name }) => {
    const names = [String(schema_name), String(table_name)]
    return rowsOf(`the table ${names.join(".")}`, names.map(identifier).join("."))
  })
  const files = parquet.map((path) =>
    rowsOf(`the rows of ${relative(output, path)}`, "read_parquet(?, hive_partitioning = false)", [path]),
  )
  return yield* Effect.all([...tables, ...files])
}, Effect.scoped)

const writtenIn = Effect.fnUntraced(function* (folder: string, shown: ReadonlyArray<Written>) {
  const wiring = yield* Wiring
  // What the machine refuses, such as a full disk, is why the night did not come to its end.
  const files = yield* Effect.try({ try: () => filesIn(folder), catch: wordsOf })
  const parquet = files.map(({ where }) => join(folder, where)).filter((path) => path.endsWith(".parquet"))
  const tables = yield* tablesIn(join(folder, "output"), parquet).pipe(
    Effect.provide(wiring.database),
    Effect.mapError(({ message }) => message),
  )
  return { files: files.length, tables: tables.length, all: [...files, ...tables, ...shown] }
})

const landing = "landing/"
const controlled = [landing, "the table ", "the rows of "]

const judge = (
  written: Effect.Success<ReturnType<typeof writtenIn>>,
  { planted, control }: Canaries,
): Finding => {
  const secrets = Object.values(planted)
  const found = written.all.flatMap((one) => findIn(one, secrets)).map(({ is, where }) => `${is} in ${where}`)
  const more = found.length > told ? ` (and ${found.length - told} more)` : ""
  if (found.length > 0) return failed("canary-found", { findings: found.slice(0, told).join("; "), more })
  const kept = written.all.flatMap((one) => findIn(one, [control]))
  const unseen = controlled.filter((place) => !kept.some(({ where }) => where.includes(place)))
  const isRepeated = written.all.some(
    ({ where, text }) => where.includes(landing) && text.includes(`"input":"${blanked}"`),
  )
  if (unseen.length > 0 || !isRepeated) return failed("canary-blind")
  const bytes = written.all.reduce((sum, { text }) => sum + text.length, 0)
  return ok(
    `${counted(secrets.length, "secret")} planted in a test night whose service repeated one of them; none ` +
      `was found in ${counted(written.files, "file")}, ${counted(written.tables, "table")} and the output ` +
      `(${bytesText(bytes)} searched)`,
  )
}

/** The commands of the canary's user, with the exit codes that they end with: a login is rejected. */
const commands = [
  { args: ["run", "job.yaml", "--output", "output", "--log-level", "debug"], expected: 3 },
  { args: ["explain", "c-refused", "--output", "output", "--json"], expected: 0 },
] as const

const runAll = (environment: Record<string, string | undefined>, folder: string) =>
  Effect.forEach(commands, ({ args, expected }) =>
    Effect.flatMap(runCommand(args, environment, folder), ({ code, shown, stderr }) => {
      if (code === expected) return Effect.succeed(shown)
      const [said = ""] = /^nightjar: .*$/m.exec(stderr) ?? []
      return Effect.fail(`\`${args[0]}\` ended with exit code ${code}${said === "" ? "" : `, ${said}`}`)
    }),
  )

const prepared = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const folder = yield* files.makeTempDirectoryScoped({ prefix: "nightjar-canary-" })
  const canaries = yield* makeCanaries
  yield* files.makeDirectory(join(folder, "temporary"))
  yield* files.writeFileString(join(folder, "job.yaml"), jobText(folder, canaries))
  return { folder, canaries }
}).pipe(Effect.mapError(({ message }) => message))

const tried = Effect.gen(function* () {
  const { folder, canaries } = yield* prepared
  const shown = yield* runAll(environmentOf(canaries, folder), folder)
  return judge(yield* writtenIn(folder, shown.flat()), canaries)
}).pipe(Effect.scoped)

/** One line of `doctor`. Never fails. */
export const canaryCheck = tried.pipe(
  Effect.catch((detail) => Effect.succeed(failed("canary-unfinished", { detail }))),
)
