/**
 * `doctor --canary`: a small night of this installation in a temporary folder, against a service that repeats
 * every secret; then everything written, shown or sent is searched for them. A text in the records, which has
 * to be found, proves that the search works.
 */
import { readFileSync, readdirSync } from "node:fs"
import { join, relative } from "node:path"
import { Context, Duration, Effect, FileSystem, Layer, Predicate, Random, Stream } from "effect"
import {
  HttpClient,
  HttpClientRequest,
  HttpMethod,
  HttpServer,
  HttpServerRequest,
  HttpServerResponse,
} from "effect/http"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { identifier } from "../base/DuckDbFailed.ts"
import { LocalServer } from "../base/LocalServer.ts"
import { bytesText, counted, wordsOf } from "../base/Text.ts"
import { failed, ok, type Finding } from "./Failures.ts"
import { Wiring } from "./Wiring.ts"
import { SandboxServer } from "../sandbox/server/SandboxServer.ts"
import { secretHeader } from "../service/Api.ts"

// The secrets that `doctor --canary` plants, made up anew each time. In the middle of each are characters
// that nothing contains by chance and that survive every escaping: few needles find it in any spelling.

export interface Canary {
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
const password = (core: string): string => `Ca é"<&+/${core}~'>?ü`

export const makeCanaries = Effect.gen(function* () {
  const [app, good, bad, kept] = yield* Effect.replicateEffect(hexDigits(coreLength), 4)
  const key = yield* hexDigits(64)
  const pin = yield* Random.nextIntBetween(1e14, 9e14)
  const made = (is: string, core = "", value = core): Canary => ({ is, value, core })
  return {
    application: made("the application secret", app, `ca+/${app}"&`),
    storeKey: made("the key of the token store", key),
    password: made("a password", good, password(good ?? "")),
    rejected: made("the password of a rejected login", bad, password(bad ?? "")),
    /** As it is sent; the environment has it with zeros before it. */
    number: made("a login that is sent as a number", `${pin}`),
    /** No secret: it stands in a record, and has to be found where records are kept. */
    control: made("the control", kept, `kept ${kept}`),
  }
})
export type Canaries = Effect.Success<typeof makeCanaries>

/** What the service issued is as secret as a login; of its form nothing is known. */
export const issuedCanary = (is: string, value: string): Canary => {
  const [longest = ""] = (value.match(/[A-Za-z0-9]+/g) ?? []).toSorted((a, b) => b.length - a.length)
  return { is, value, core: longest.length >= coreLength / 2 ? longest : value }
}

export const spelled = ({ value }: Canary): string => {
  const bytes = Buffer.from(value)
  return [
    value,
    JSON.stringify(value),
    encodeURIComponent(value),
    encodeURI(value),
    value.replaceAll(/[^A-Za-z0-9]/gu, (sign) => `&#${sign.codePointAt(0)};`),
    bytes.toString("base64"),
    bytes.toString("base64url"),
    bytes.toString("hex"),
    Buffer.from(`somebody:${value}`).toString("base64"),
    `https://somebody:${encodeURIComponent(value)}@example.org/`,
  ].join(" ")
}

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

/** Something that was written, shown or sent, as Latin-1, so that no byte is lost. */
export interface Written {
  readonly where: string
  readonly text: string
}

const latin1 = (bytes: Uint8Array | string): string => Buffer.from(bytes).toString("latin1")

const findIn = ({ where, text }: Written, canaries: ReadonlyArray<Canary>) =>
  canaries
    .filter((canary) => needlesOf(canary).some((needle) => text.includes(needle)))
    .map(({ is }) => ({ is, where }))

// The embedded service behind a server that repeats every secret in every answer, is telemetry collector and
// receiver of notices too, and keeps what those were sent.

const sandboxSecret = "sandbox-app-1"
const speed = 300
const limits = { headersTimeout: Duration.seconds(5), requestTimeout: Duration.seconds(10) }

/** Forms are schemas, counts are numbers: another key would make another answer of them. */
const closedFields: ReadonlySet<string> = new Set(["parameters", "configurations", "products_count"])
const textFields: ReadonlySet<string> = new Set(["status_message", "message", "msg", "detail"])
const issuedFields: Readonly<Record<string, string>> = {
  ticket: "a ticket",
  session_token: "a session's token",
  token_key: "the key of a token",
}

const withPin = (form: object): object =>
  "properties" in form && Predicate.isObject(form.properties)
    ? { ...form, properties: { ...form.properties, pin: { type: "integer" } } }
    : form

/** The answer with the echo in every object and in every free text, but not in records, which are kept. */
const withEcho = (value: unknown, echo: string): unknown => {
  if (Array.isArray(value)) return value.map((item) => withEcho(item, echo))
  if (!Predicate.isObject(value)) return value
  const fields = Object.entries(value).map(([key, inner]) => {
    if (key === "parameters" && Predicate.isObject(inner)) return [key, withPin(inner)]
    if (key === "data" || closedFields.has(key)) return [key, inner]
    if (typeof inner === "string" && textFields.has(key)) return [key, `${inner} ${echo}`]
    return [key, withEcho(inner, echo)]
  })
  return { ...Object.fromEntries(fields), said: echo }
}

const withControl = (records: unknown, control: string): unknown =>
  JSON.parse(JSON.stringify(records), (_, one: unknown) =>
    Predicate.isObject(one) && "product" in one && "sub_family" in one ? { ...one, said: control } : one,
  )

/** Undefined if it is not JSON; `see` gets every field on the way. */
const parse = (text: string, see: (key: string, value: unknown) => void): unknown => {
  try {
    return JSON.parse(text, (key, value: unknown) => {
      see(key, value)
      return value
    })
  } catch {
    return undefined
  }
}

const makeHostile = (canaries: Canaries) => {
  const { control, ...planted } = canaries
  const issued = new Map<string, Canary>()
  let echoes = 0
  const noteIssued = (key: string, value: unknown): void => {
    const is = issuedFields[key]
    if (is !== undefined && typeof value === "string") issued.set(value, issuedCanary(is, value))
  }
  const hostile = (path: string, text: string): string => {
    const answer = parse(text, noteIssued)
    if (answer === undefined || path.endsWith("/profile")) return text
    echoes += 1
    const echo = [...Object.values(planted), ...issued.values()].map(spelled).join(" ")
    const repeated = withEcho(answer, echo)
    if (!Predicate.isObject(repeated) || repeated["data"] === undefined || !path.endsWith("/results"))
      return JSON.stringify(repeated)
    return JSON.stringify({ ...repeated, data: withControl(repeated["data"], control.value) })
  }
  return { issued, echoes: () => echoes, hostile }
}

/** Below /api and /flows of `origin`; `issued` and `echoes` (answers with secrets) grow as it answers. */
export const openCanaryService = Effect.fnUntraced(function* (canaries: Canaries) {
  const wiring = yield* Wiring
  const built = yield* Layer.build(wiring.sandboxServer({ port: 0, host: "127.0.0.1", seed: 1, speed }))
  const sandbox = new URL(Context.get(built, SandboxServer).base_url).origin
  const client = Context.get(yield* Layer.build(wiring.receivers), HttpClient.HttpClient)
  const { issued, echoes, hostile } = makeHostile(canaries)
  const sent: Array<Written> = []

  const answer = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const { method } = request
    const { pathname } = new URL(request.url, sandbox)
    const body = new Uint8Array(yield* request.arrayBuffer)
    if (!HttpMethod.isHttpMethod(method) || !/^\/(?:api|flows)\//.test(pathname)) {
      sent.push({ where: `what was sent to ${pathname}`, text: latin1(body) })
      return HttpServerResponse.jsonUnsafe({})
    }
    const { host: _, connection: __, "content-length": ___, ...headers } = request.headers
    const known = headers[secretHeader.toLowerCase()] === canaries.application.value
    const asked = HttpClientRequest.make(method)(`${sandbox}${request.url}`, {
      headers: { ...headers, ...(known ? { [secretHeader]: sandboxSecret } : {}) },
    })
    const type = headers["content-type"] ?? "application/json"
    const response = yield* client.execute(
      body.length === 0 ? asked : HttpClientRequest.bodyUint8Array(asked, body, type),
    )
    const { "content-length": ____, "transfer-encoding": _____, ...answered } = response.headers
    const text = yield* response.text
    return HttpServerResponse.text(text === "" ? "" : hostile(pathname, text), {
      status: response.status,
      headers: answered,
    })
  }).pipe(Effect.catch(() => Effect.succeed(HttpServerResponse.empty({ status: 502 }))))

  const server = yield* Layer.build(LocalServer.layer({ host: "127.0.0.1", port: 0, ...limits }))
  yield* Effect.provide(HttpServer.serveEffect(answer), server)
  const origin = HttpServer.formatAddress(Context.get(server, HttpServer.HttpServer).address)
  return { origin, issued, sent, echoes }
})
type CanaryService = Effect.Success<ReturnType<typeof openCanaryService>>

/** Each takes two or three seconds on a machine with nothing else to do. */
const commandTime = Duration.seconds(60)
/** Of each stream of a command; a night shows some kilobytes. */
const shownBytesMax = 16_000_000
const told = 5

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
    parameters: { username: queue-1+run-1+records-3, password: env:CANARY_PASSWORD, pin: env:CANARY_NUMBER }
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
  CANARY_NUMBER: `00${canaries.number.value}`,
  CANARY_RECEIVER: `${origin}/receiver`,
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

const controlled = ["landing/", "the table ", "the rows of "]

const judge = (
  written: Effect.Success<ReturnType<typeof writtenIn>>,
  canaries: Canaries,
  service: CanaryService,
): Finding => {
  const { control, ...planted } = canaries
  const secrets = [...Object.values(planted), ...service.issued.values()]
  const found = written.all.flatMap((one) => findIn(one, secrets)).map(({ is, where }) => `${is} in ${where}`)
  const more = found.length > told ? ` (and ${found.length - told} more)` : ""
  if (found.length > 0) return failed("canary-found", { findings: found.slice(0, told).join("; "), more })
  const kept = written.all.flatMap((one) => findIn(one, [control]))
  const unseen = controlled.filter((place) => !kept.some(({ where }) => where.includes(place)))
  if (unseen.length > 0 || service.echoes() === 0 || service.sent.length === 0) return failed("canary-blind")
  const bytes = written.all.reduce((sum, { text }) => sum + text.length, 0)
  return ok(
    `${counted(secrets.length, "secret")} planted in a test night whose service repeated them in ` +
      `${counted(service.echoes(), "answer")}; none was found in ${counted(written.files, "file")}, ` +
      `${counted(written.tables, "table")}, the output and what was sent (${bytesText(bytes)} searched)`,
  )
}

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

const prepared = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const folder = yield* files.makeTempDirectoryScoped({ prefix: "nightjar-canary-" })
  const canaries = yield* makeCanaries
  const service = yield* openCanaryService(canaries)
  yield* files.makeDirectory(join(folder, "temporary"))
  yield* files.writeFileString(join(folder, "job.yaml"), jobText(service.origin))
  return { folder, canaries, service }
}).pipe(Effect.mapError(({ message }) => message))

const tried = Effect.gen(function* () {
  const { folder, canaries, service } = yield* prepared
  const shown = yield* runAll(environmentOf(canaries, service.origin, folder), folder)
  return judge(yield* writtenIn(folder, [...shown.flat(), ...service.sent]), canaries, service)
}).pipe(Effect.scoped)

/** One line of `doctor`. Never fails. */
export const canaryCheck = tried.pipe(
  Effect.catch((detail) => Effect.succeed(failed("canary-unfinished", { detail }))),
)
