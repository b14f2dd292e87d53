/**
 * `npm run conformance`: the OpenAPI document before a public validator, then a tour of every endpoint and
 * status and whole nights of the program, under today's reading and under drawn ones, all through a proxy that
 * holds every request and answer against the document. Prints what was checked; ends with 1 where anything did not fit.
 */
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from "node:http"
import { fileURLToPath } from "node:url"
import { Validator } from "@seriousme/openapi-schema-validator"
import { serviceOpenApi } from "../project/openapi.ts"
import { readingChoices, type Reading } from "../../src/sandbox/state/Reading.ts"
import { seeded } from "../simulation/NightPlan.ts"
import { isObject } from "../project/schemaNodes.ts"
import { runNights, startService, type Night, type NightEnd } from "./ServiceUnderTest.ts"
import { takeTour, tourFaults } from "./Tour.ts"
import { makeTrafficCheck, makeTrafficLog, renderCounts } from "./TrafficCheck.ts"
import type { Exchange, Finding, TrafficLog } from "./TrafficCheck.ts"

/** Seconds of the service in one second of the machine, during the night: a queue of minutes is gone in a second. */
const nightSpeed = 300

/** What the public validator says against the document; empty when it is a valid one. */
export const validateDocument = async (): Promise<string> => {
  const { valid, errors } = await new Validator().validate({ ...serviceOpenApi() })
  return valid ? "" : JSON.stringify(errors)
}

/** A proxy that changes nothing and hands over every exchange, byte for byte, once both sides of it are whole. */
interface RecordingProxy {
  readonly origin: string
  readonly close: () => Promise<void>
}

const wholeBody = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of message) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}

const headersOf = (message: IncomingMessage): Readonly<Record<string, string | Array<string>>> =>
  Object.fromEntries(
    Object.entries(message.headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )

const pass = async (
  target: URL,
  request: IncomingMessage,
  response: ServerResponse,
  record: (exchange: Exchange) => void,
): Promise<void> => {
  const { method = "GET", url = "/" } = request
  const requestBody = await wholeBody(request)
  const headers = { ...headersOf(request), host: target.host }
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  forward({ host: target.hostname, port: target.port, method, path: url, headers }, resolve)
    .on("error", reject)
    .end(requestBody)
  const answer = await promise
  const responseBody = await wholeBody(answer)
  const status = answer.statusCode ?? 0
  record({
    method,
    url,
    requestHeaders: headersOf(request),
    requestBody: requestBody.toString(),
    status,
    contentType: answer.headers["content-type"],
    responseBody: responseBody.toString(),
  })
  response.writeHead(status, answer.rawHeaders)
  response.end(responseBody)
}

const startProxy = async (
  targetOrigin: string,
  record: (exchange: Exchange) => void,
): Promise<RecordingProxy> => {
  const target = new URL(targetOrigin)
  const server = createServer((request, response) => {
    pass(target, request, response, record).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  if (typeof address !== "object" || address === null) throw new Error("the proxy has no address")
  return {
    origin: `http://127.0.0.1:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const throughProxy = async (
  speed: number,
  faults: object,
  use: (origin: string, service: string) => Promise<void>,
  seen?: (exchange: Exchange, finding: Finding) => void,
  reading?: Reading,
): Promise<TrafficLog> => {
  const log = makeTrafficLog(await makeTrafficCheck(serviceOpenApi()), seen)
  const service = await startService(speed, faults, reading)
  try {
    const proxy = await startProxy(service.origin, log.record)
    await use(proxy.origin, service.origin).finally(() => proxy.close())
  } finally {
    service.stop()
  }
  return log
}

export const tourThroughProxy = (
  seen?: (exchange: Exchange, finding: Finding) => void,
): Promise<TrafficLog> => throughProxy(1, tourFaults, (origin) => takeTour(origin, serviceOpenApi()), seen)

export const nightsThroughProxy = async (
  nights: ReadonlyArray<Night>,
  reading?: Reading,
): Promise<{ readonly log: TrafficLog; readonly ends: ReadonlyArray<NightEnd> }> => {
  const { promise, resolve } = Promise.withResolvers<ReadonlyArray<NightEnd>>()
  const use = async (origin: string, service: string) => resolve(await runNights(origin, nights, service))
  const log = await throughProxy(nightSpeed, { faults: [] }, use, undefined, reading)
  return { log, ends: await promise }
}

/** The demo set: a night of everything, one that gets tokens, one that uses them, sessions, webhooks. */
const demoSet: ReadonlyArray<Night> = [
  { job: "demo.yaml" },
  { job: "tokens.yaml" },
  { job: "tokens.yaml", further: true },
  { job: "sessions.yaml" },
  { job: "webhooks.yaml", webhooks: true },
]

/** Answers of the document that a tour has not seen, by `<operation> <status>`. */
export const unseenAnswers = (log: TrafficLog): ReadonlyArray<string> =>
  Object.values(Object(serviceOpenApi()["paths"]))
    .flatMap((methods) => Object.values(Object(methods)).filter(isObject))
    .flatMap(({ operationId, responses }) =>
      Object.keys(Object(responses)).map((status) => `${String(operationId)} ${status}`),
    )
    .filter((answer) => !log.counts.has(answer))

const tell = (title: string, log: TrafficLog, elapsedMs: number): void => {
  const refused = [...log.refused.values()].reduce((sum, count) => sum + count, 0)
  console.log(`${title}: ${log.exchanges()} requests and their answers in ${Math.round(elapsedMs / 1000)} s`)
  for (const line of renderCounts(log.counts)) console.log(line)
  console.log(`  ${refused} of the requests do not fit the document and were refused`)
  console.log(`  mismatches: ${log.mismatches.size === 0 ? "none" : ""}`)
  for (const [mismatch, count] of log.mismatches) console.log(`    ${mismatch} (${count} times)`)
}

/** Values that the document has no place for: the simulation and the acceptance nights try them. */
const outside: Readonly<Record<string, ReadonlyArray<string>>> = {
  products_count: ["absent", "null", "text", "float", "list"],
  flow_api: ["absent", "forbidden"],
  flow_error_body: ["code", "html", "empty"],
  tokenized_body: ["flat", "refused", "absent"],
  head: ["not_allowed"],
  result_kinds: ["present"],
}

/** Drawn from a seed: about half of the places are read in another way than today's, and the document has each answer. */
export const documentedReading = (seed: number): Reading => {
  const random = seeded(seed ^ 0x51ed270b)
  return Object.fromEntries(
    readingChoices.flatMap(({ key, values }) => {
      const inside = values.filter((value) => outside[key]?.includes(value) !== true)
      const drawn = inside[Math.floor(random() * inside.length)]
      return drawn === undefined || random() < 0.3 ? [] : [[key, drawn]]
    }),
  )
}

/** Readings that are drawn for further nights, one each. */
const readingSeeds = [1, 2, 3, 4]

/** Nights under readings whose every answer the document has; true where none left it. */
const tellReadings = async (): Promise<boolean> => {
  let isClean = true
  for (const seed of readingSeeds) {
    const startedAt = performance.now()
    const reading = documentedReading(seed)
    const { log, ends } = await nightsThroughProxy([{ job: "demo.yaml" }, { job: "tokens.yaml" }], reading)
    tell(`nights under the reading of seed ${seed}`, log, performance.now() - startedAt)
    const failed = ends.filter(({ code }) => code !== 0 && code !== 3 && code !== 4)
    for (const { stderr } of failed) console.log(stderr)
    isClean &&= log.mismatches.size === 0 && log.refused.size === 0 && failed.length === 0
  }
  return isClean
}

const main = async (): Promise<boolean> => {
  const invalid = await validateDocument()
  console.log(`schemas/service.openapi.json: ${invalid === "" ? "a valid OpenAPI document" : invalid}`)
  let startedAt = performance.now()
  const tour = await tourThroughProxy()
  tell("tour", tour, performance.now() - startedAt)
  const unseen = unseenAnswers(tour)
  console.log(`  answers not seen: ${unseen.length === 0 ? "none" : unseen.join(", ")}`)
  startedAt = performance.now()
  const { log, ends } = await nightsThroughProxy(demoSet)
  tell("nights", log, performance.now() - startedAt)
  for (const { job, further, code } of ends)
    console.log(`  ${job}${further ? " --new" : ""} ended with ${code}`)
  const failed = ends.filter(({ code }) => code !== 0 && code !== 3 && code !== 4)
  for (const { stderr } of failed) console.log(stderr)
  return (
    (await tellReadings()) &&
    invalid === "" &&
    [tour, log].every(({ mismatches }) => mismatches.size === 0) &&
    unseen.length === 0 &&
    log.refused.size === 0 &&
    failed.length === 0
  )
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const passed = await main()
  process.exit(passed ? 0 : 1)
}
