/**
 * Job files and files of customers that mean harm, each drawn from a seed: what a job, a table or a line is made
 * of, with parts of it repeated, moved, nested, cut, or in bytes that are no text. `validate` has to answer each
 * one with 0 or 2, every problem with its place, and must never repeat a secret.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, ConfigProvider, Effect, Exit } from "effect"
import { checkJobs } from "../../src/cli/Jobs.ts"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { drawing } from "../harness/Drawing.ts"

/** A value that a customer could have typed; no message may hold it. */
const canary = "hunter2-9f3"
/** Above any honest file's, and far below what somebody would call a hang. */
const cpuMsMax = 5_000

export const kinds = ["yaml", "csv", "ndjson", "parquet"] as const
export type Kind = (typeof kinds)[number]

const drawFrom = (seed: number) => {
  const { int, pick } = drawing(Math.imul(seed, 0x9e3779b1))
  return { below: (count: number): number => int(0, count - 1), pick }
}
type Draw = ReturnType<typeof drawFrom>

const jobLines = `name: nightly
service: { sandbox: { seed: 7, speed: 300 } }
execution: { execution_timeout: 20 minutes, max_wait: 3.5 hours }
concurrency: { max_in_flight: 100, per_engine: 20 }
retry: { max_attempts: 3, base: 30 seconds, max: 15 minutes }
deadline: "07:00"
timezone: Europe/Madrid
engines:
  - reference: sandbox-bank:website
    hooks_extra_data: { batch: one }
    features:
      - customer_information_read
      - { code: accounts_read, configurations: { last_n_years: 5 } }
customers:
  - id: c-1
    parameters: { username: ${canary}, password: "${canary}" }
  - id: c-2
    parameters:
      username: env:USER_2
      password: '${canary}'
    engines:
      - reference: sandbox-tax:website
        parameters: { nif: ${canary}, pin: file:pin }
sessions: [{ id: s-1, customer: c-3 }]`.split("\n")

const scalars = [
  ..."|~|null|[]|{}|- |? |: |*a|&a 1|&a [*a]|!!binary x|!x y|<<: *a|>-|%YAML 9|---|...|\t|\0|\uFEFF|\u2028|0x1f|1e999|-0".split(
    "|",
  ),
  ...'.nan|2026-11-21|${HOME|${NAME}|\'|"|"\\u12"|"\\x"|#|@|`|env:|file:/dev/zero|file:/etc|exec:sleep 100'.split(
    "|",
  ),
  ..."__proto__|constructor|toString|=1+1|\u202e|😀|\r|c-1@example.com|12345678Z|/dev/zero|../../..|*.parquet".split(
    "|",
  ),
  "|",
  "${NAME}".repeat(50),
  "é".repeat(3_000),
  "a".repeat(70_000),
  ...["[", "{a: ", "- "].map((piece) => piece.repeat(300)),
]

const linesOf = (draw: Draw, from: ReadonlyArray<string>): Array<string> => {
  const lines = [...from]
  for (let left = 1 + draw.below(5); left > 0 && lines.length > 0; left--) {
    const at = draw.below(lines.length)
    const line = lines[at] ?? ""
    const piece = draw.pick(scalars)
    const cut = draw.below(line.length + 1)
    const changes: ReadonlyArray<() => unknown> = [
      () => lines.splice(at, 1),
      () => lines.splice(at, 0, ...Array.from({ length: 1 + draw.below(200) }, () => line)),
      () => (lines[at] = " ".repeat(draw.below(9)) + line.trimStart()),
      () => (lines[at] = line.slice(0, cut) + piece + line.slice(cut)),
      () => (lines[at] = line.replace(/:.*/, () => `: ${piece}`)),
      () => (lines[at] = line.replace(/[\w-]+/, () => piece)),
      () => (lines[at] = line.replaceAll(/[[\]{}]/g, () => draw.pick([..."[]{},:"]))),
      () => lines.splice(at, 0, piece),
      () => (lines[at] = lines[draw.below(lines.length)] ?? ""),
      () => lines.splice(at),
      () => (lines[at] = line.slice(0, cut)),
    ]
    draw.pick(changes)()
  }
  return lines
}

const bytesOf = (draw: Draw, text: string): Buffer => {
  const bytes = Buffer.from(text)
  if (draw.below(10) > 0 || bytes.length === 0) return bytes
  for (let left = 1 + draw.below(3); left > 0; left--) bytes[draw.below(bytes.length)] = draw.below(256)
  return bytes
}

const csvText = (draw: Draw): string => {
  const separator = draw.pick([",", ";", "\t", ",,"])
  const header = ["customer_id", "engine_reference", "username", "password"].join(separator)
  const cell = () =>
    draw.below(3) === 0
      ? draw.pick(scalars)
      : draw.below(2) === 0
        ? canary
        : `"${canary}${draw.pick(scalars)}"`
  const row = (index: number) => [`c-${index}`, "sandbox-bank:website", cell(), cell()].join(separator)
  const rows = Array.from({ length: draw.below(8) }, (_, index) => row(index))
  return linesOf(draw, [header, ...rows]).join(draw.pick(["\n", "\r\n", "\r", "\n\n"]))
}

const jsonOf = (draw: Draw, depth: number): unknown => {
  const leaf = () => draw.pick<unknown>([canary, draw.pick(scalars), null, true, -0, 1e300, 2 ** 53, ""])
  if (depth === 0 || draw.below(3) > 0) return leaf()
  if (draw.below(2) === 0) return Array.from({ length: draw.below(4) }, () => jsonOf(draw, depth - 1))
  return { [draw.pick(scalars)]: jsonOf(draw, depth - 1), b: leaf() }
}

const ndjsonText = (draw: Draw): string => {
  const deep = () => `{"customer_id":"d","a":${"[".repeat(5_000)}${"]".repeat(5_000)}}`
  const line = (index: number) => {
    const fields = { customer_id: `c-${index}`, password: canary, username: jsonOf(draw, 4) }
    const text = JSON.stringify(draw.below(4) === 0 ? jsonOf(draw, 4) : fields)
    return draw.below(20) === 0
      ? deep()
      : text.replace("username", draw.pick(["username", "__proto__", "customer_id"]))
  }
  return linesOf(
    draw,
    Array.from({ length: 1 + draw.below(6) }, (_, index) => line(index)),
  ).join("\n")
}

const tables = [
  `SELECT 'c-' || i AS customer_id, '${canary}' AS password FROM range(50) t(i)`,
  "SELECT i AS customer_id, [i, i + 1] AS list, {'a': i, 'b': {'c': 'x'}} AS nested FROM range(20) t(i)",
  "SELECT 'c-' || i AS customer_id, 1.5::DECIMAL(38, 9) AS d, now() AS t, 'x'::BLOB AS b, uuid() AS u FROM range(20) t(i)",
  "SELECT 'c-1' AS customer_id, repeat('a', 1000) AS long FROM range(3000)",
  "SELECT NULL AS customer_id, MAP {'a': 1} AS m, INTERVAL 1 DAY AS i, 'nan'::DOUBLE AS n FROM range(3)",
]

const parquetFiles = (folder: string) =>
  Effect.gen(function* () {
    const connection = yield* Effect.flatMap(DuckDb, (database) =>
      database.open({ path: ":memory:", access: "read-write" }),
    )
    return yield* Effect.forEach(tables, (sql, index) => {
      const path = join(folder, `whole-${index}.parquet`)
      return Effect.map(connection.run(`COPY (${sql}) TO '${path}' (FORMAT parquet)`), () =>
        readFileSync(path),
      )
    })
  }).pipe(Effect.scoped, Effect.provide(DuckDb.layer))

const brokenBytes = (draw: Draw, whole: Buffer): Buffer => {
  const bytes = Buffer.from(whole)
  // The footer says what all the rest means, so that it is broken more often.
  const place = () =>
    draw.below(2) === 0
      ? draw.below(bytes.length)
      : bytes.length - 1 - draw.below(Math.min(600, bytes.length))
  for (let left = 1 + draw.below(4); left > 0; left--)
    bytes[place()] = draw.pick([0, 255, 127, draw.below(256)])
  const start = draw.below(bytes.length)
  const shapes: ReadonlyArray<() => Buffer> = [
    () => bytes,
    () => bytes,
    () => bytes.subarray(0, start),
    () => Buffer.concat([bytes.subarray(0, start), bytes]),
    () => Buffer.concat([bytes.subarray(start), Buffer.from("PAR1")]),
  ]
  return draw.pick(shapes)()
}

export interface Violation {
  readonly seed: number
  readonly kind: Kind
  readonly what: string
}

const environment = ConfigProvider.fromEnvRecord({ NAME: "x", USER_2: canary })

const judge = (path: string): Effect.Effect<string | undefined> =>
  Effect.gen(function* () {
    const before = process.cpuUsage()
    const exit = yield* Effect.exit(
      checkJobs([path]).pipe(
        Effect.provideService(ConfigProvider.ConfigProvider, environment),
        Effect.provide(NodeServices.layer),
      ),
    )
    const { user, system } = process.cpuUsage(before)
    if (!Exit.isSuccess(exit)) return `it is no answer: ${Cause.pretty(exit.cause)}`
    if ((user + system) / 1_000 > cpuMsMax) return `it took ${Math.round((user + system) / 1_000)} ms of CPU`
    const [checked] = exit.value
    if (checked === undefined) return "no answer"
    if (checked.job === undefined && checked.errors.length === 0) return "it is refused without a word"
    const told = [...checked.errors, ...checked.warnings]
    const unplaced = told.find(
      ({ file, line, column, message }) => file === "" || line < 1 || column < 1 || message === "",
    )
    if (unplaced !== undefined) return `a problem has no place: ${JSON.stringify(unplaced)}`
    const leaking = told.find(({ message }) => message.includes(canary))
    return leaking === undefined ? undefined : `it tells a secret: ${leaking.message}`
  })

/** Files of the seeds from `from` on, each judged; answers how many, by kind and end, and what was violated. */
export const judgeFiles = (from: number, count: number) =>
  Effect.gen(function* () {
    const folder = mkdtempSync(join(tmpdir(), "hostile-"))
    const whole = yield* parquetFiles(folder)
    const violations: Array<Violation> = []
    const counts: Record<Kind, number> = { yaml: 0, csv: 0, ndjson: 0, parquet: 0 }
    const job = join(folder, "job.yaml")
    for (let seed = from; seed < from + count; seed++) {
      const draw = drawFrom(seed)
      const kind = draw.pick(["yaml", "yaml", "yaml", "csv", "csv", "ndjson", "ndjson", "parquet"] as const)
      counts[kind] += 1
      const data = join(folder, `customers.${kind}`)
      if (kind === "yaml") writeFileSync(job, bytesOf(draw, linesOf(draw, jobLines).join("\n")))
      else {
        const references = draw.pick(["", "\n    references: [password]", "\n    references: []"])
        const engines = "name: a\nservice: sandbox\nengines: [sandbox-bank:website]"
        writeFileSync(job, `${engines}\ncustomers:\n  - from: customers.${kind}${references}\n`)
      }
      if (kind === "csv") writeFileSync(data, bytesOf(draw, csvText(draw)))
      if (kind === "ndjson") writeFileSync(data, bytesOf(draw, ndjsonText(draw)))
      if (kind === "parquet") writeFileSync(data, brokenBytes(draw, draw.pick(whole)))
      const what = yield* judge(job)
      if (what !== undefined) violations.push({ seed, kind, what })
    }
    rmSync(folder, { recursive: true, force: true })
    return { counts, violations }
  })
