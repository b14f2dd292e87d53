/**
 * One campaign: nights against a service that repeats secrets in every place of every answer, the other commands
 * after them, and a search of everything that was written or shown.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Canary } from "./Echo.ts"
import { Collector } from "../report/Collector.ts"
import { echoPlaces, type EchoPlace } from "./EchoPlaces.ts"
import { EchoService, type EchoCase } from "./EchoService.ts"
import { filesIn, searchFor, tablesIn, type Leak, type Text } from "./SearchOutput.ts"
import { plainEnvironment } from "../harness/Environment.ts"
import { startHere } from "../harness/ProgramHere.ts"

const application: Canary = { user: "app", secret: 'app-canary+/7&"kQ-secret' }
const stranger: Canary = { user: "user-stranger", secret: "stranger canary/7 ü+Q~z" }
const storeKey: Canary = { user: "key", secret: "c0".repeat(16) + "ca".repeat(16) }
const control: EchoCase = {
  customer_id: "c-control",
  engine_reference: "bank:control",
  login: { user: "user-control", secret: "control-canary/9 é&Q" },
  place: undefined,
}

const isTokenCase = ({ place }: EchoCase): boolean =>
  place !== undefined && ["exchangeTicket", "startTokenized", "revokeToken"].includes(place.operation)

const caseOf = (place: EchoPlace, index: number): EchoCase => ({
  customer_id: `c-${index}`,
  engine_reference: `e-${index}:website`,
  login: { user: `user-${index}`, secret: `pw-canary/${index} é"<Q&+` },
  place,
})

export interface EchoResult {
  readonly places: number
  /** Places that the service really answered with. */
  readonly echoed: number
  /** Those that it never had an occasion for. */
  readonly unreached: ReadonlyArray<string>
  readonly secrets: number
  readonly searchedBytes: number
  readonly leaks: ReadonlyArray<Leak>
  /** Where the control was found: landing, database and Parquet must be among them. */
  readonly controlIn: ReadonlyArray<string>
  /** Telemetry that was searched. */
  readonly sentBytes: number
  readonly exitCodes: Readonly<Record<string, number | null>>
}

const nameOf = ({ operation, status, path, how }: EchoPlace): string =>
  `${operation} ${status} ${path.join(".")} as a ${how}`

const customerText = (one: EchoCase): string => {
  const login = { username: one.login.user, password: one.login.secret }
  const tokens = isTokenCase(one) ? "tokenized_access: true, " : ""
  return `  - { id: ${one.customer_id}, ${tokens}engines: ["${one.engine_reference}"], parameters: ${JSON.stringify(login)} }`
}

/** Where the nights are served, and where their telemetry goes. */
interface Places {
  readonly origin: string
  readonly otlp: string
}

const jobText = (
  name: string,
  { origin, otlp }: Places,
  cases: ReadonlyArray<EchoCase>,
): string => `name: ${name}
telemetry: { otlp: "${otlp}", customer_ids: true }
service: { base_url: "${origin}/api", flows_url: "${origin}/flows", app_secret: "env:ECHO_APP_SECRET" }
tokens: { key: "env:ECHO_STORE_KEY" }
concurrency: { max_in_flight: 200, per_engine: 200 }
polling: { min: 100 millis, max: 300 millis }
execution: { max_wait: 15 seconds }
retry: { max_attempts: 1, base: 100 millis, max: 200 millis }
flow_results: { wait_final: 1 second }
customers:
${cases.map(customerText).join("\n")}
`

const isControlPlace = (where: string): boolean =>
  where.startsWith("landing/") || where.endsWith(".duckdb") || /parquet|^"/.test(where)

const commandsOf = (cases: ReadonlyArray<EchoCase>): ReadonlyArray<ReadonlyArray<string>> => {
  const tokens = cases.filter(isTokenCase)
  const revoked = tokens.filter(({ place }) => place?.operation === "revokeToken")
  const shown = cases.filter(({ place }) => place?.operation === "showEngine")
  const some = cases.filter((_, index) => index % 40 === 0)
  return [
    ["validate", "job.yaml"],
    ["doctor", "job.yaml"],
    ["plan", "job.yaml"],
    ["run", "job.yaml", "--log-level", "debug"],
    ["plan", "job.yaml", "--json"],
    ...(tokens.length === 0 ? [] : [["run", "again.yaml", "--json", "--log-level", "debug"]]),
    ["tokens", "list"],
    ...revoked.map(({ customer_id, engine_reference }) => [
      "tokens",
      "revoke",
      "job.yaml",
      `${customer_id}/${engine_reference}`,
    ]),
    ["status"],
    ["status", "--json"],
    ["runs", "--json"],
    ["credentials", "list", "--json"],
    ["engines", "list", "--job", "job.yaml", "--json"],
    ["engines", "list", "--job", "job.yaml"],
    ...[...shown.slice(0, 2), ...some].flatMap(({ customer_id, engine_reference }) => [
      ["engines", "show", engine_reference, "--job", "job.yaml"],
      ["engines", "show", engine_reference, "--job", "job.yaml", "--json"],
      ["explain", customer_id],
      ["explain", customer_id, "--json"],
    ]),
    ["verify"],
  ]
}

/** Streams as Latin-1, as everything that is searched. */
const runCommand = async (folder: string, args: ReadonlyArray<string>) => {
  const { code, stdout, stderr } = await startHere([...args, "--output", join(folder, "output")], {
    folder,
    environment: {
      ...plainEnvironment,
      ECHO_APP_SECRET: application.secret,
      ECHO_STORE_KEY: storeKey.secret,
    },
  }).ended
  const latin = (text: string) => Buffer.from(text).toString("latin1")
  return { code, stdout: latin(stdout), stderr: latin(stderr) }
}

/** Tries each `every`-th place, from `first` on, of all operations or of one. */
export const tryEchoes = async (every: number, first = 0, only?: string): Promise<EchoResult> => {
  const folder = mkdtempSync(join(tmpdir(), "echoes-"))
  const chosen = echoPlaces
    .filter(({ operation }) => only === undefined || operation === only)
    .filter((_, index) => index % every === first % every)
  const listPlaces = chosen.filter(({ operation, status }) => operation === "listEngines" && status === 200)
  const cases = [...chosen.filter((place) => place.operation !== "listEngines").map(caseOf), control]
  const service = new EchoService(cases, { application, stranger }, listPlaces)
  const collector = new Collector()
  try {
    const at = { origin: await service.listen(), otlp: await collector.listen() }
    // Whose password is repeated to others is a customer of the same nights.
    const known = { ...control, customer_id: "c-stranger", login: stranger }
    writeFileSync(join(folder, "job.yaml"), jobText("echoes", at, [...cases, known]))
    writeFileSync(join(folder, "again.yaml"), jobText("again", at, [...cases.filter(isTokenCase), known]))
    const shown: Array<Text> = []
    const exitCodes: Record<string, number | null> = {}
    for (const args of commandsOf(cases)) {
      const end = await runCommand(folder, args)
      exitCodes[args.join(" ")] = end.code
      shown.push({ where: `stdout of ${args.join(" ")}`, text: end.stdout })
      shown.push({ where: `stderr of ${args.join(" ")}`, text: end.stderr })
    }
    const output = join(folder, "output")
    const sent = collector.raw.map((one) => Buffer.from(one).toString("latin1"))
    const telemetry = sent.map((text) => ({ where: "telemetry", text }))
    const texts = [...filesIn(output), ...(await tablesIn(output)), ...shown, ...telemetry]
    const secrets = [
      application,
      stranger,
      storeKey,
      ...service.issued,
      ...cases.slice(0, -1).map(({ login }) => login),
    ]
    const found = searchFor([control.login], texts)
    const tried = chosen.filter(({ operation, status }) => operation !== "listEngines" || status === 200)
    return {
      places: tried.length,
      echoed: service.echoed.size,
      unreached: tried.filter((place) => !service.echoed.has(place)).map(nameOf),
      secrets: secrets.length,
      searchedBytes: texts.reduce((sum, { text }) => sum + text.length, 0),
      leaks: [...searchFor(secrets, texts), ...found.filter(({ where }) => !isControlPlace(where))],
      controlIn: [...new Set(found.map(({ where }) => where))],
      sentBytes: sent.reduce((sum, text) => sum + text.length, 0),
      exitCodes,
    }
  } finally {
    collector.close()
    await service.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
