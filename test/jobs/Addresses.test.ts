/**
 * Where a job's service lives: legacy and production hosts, prefixes, this machine, and the flow server that
 * stands beside the other API under a path. What could hand the secret to somebody else is refused.
 */
import { describe, expect } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { load } from "./loading.ts"
import { effect } from "../harness/Steps.ts"

const jobText = (service: string) => `name: job
service: { ${service}, app_secret: env:S }
sessions: [s-1]
`

const decodeAddresses = Schema.decodeUnknownSync(
  Schema.Struct({
    service: Schema.Struct({
      base_url: Schema.String,
      flows_url: Schema.String,
      attachments_url: Schema.String,
    }),
  }),
)

const resolved = (base_url: string, flows_url: string, attachments_url?: string) =>
  Effect.gen(function* () {
    const more = attachments_url === undefined ? "" : `, attachments_url: "${attachments_url}"`
    const { job, errors } = yield* load(jobText(`base_url: "${base_url}", flows_url: "${flows_url}"${more}`))
    if (errors.length > 0) return errors
    const { service } = decodeAddresses(job)
    return [service.base_url, service.flows_url, service.attachments_url]
  })

const rule = "an https:// address without user, query or fragment (plain http only to this machine)"
const pathRule = `${rule}, or a path on base_url's host, such as /api/flows`

describe("the addresses of a service", () => {
  effect("are roots of any host, with or without a final slash, below any prefix", function* () {
    for (const [written, meant] of [
      ["https://legacy.example https://flows.example/", "https://legacy.example https://flows.example"],
      ["https://a.example/api/ https://a.example/f//", "https://a.example/api https://a.example/f"],
      [
        "https://a.example:8443/x/y https://[2001:db8::1]/f",
        "https://a.example:8443/x/y https://[2001:db8::1]/f",
      ],
      ["http://localhost:3000/api http://127.1:3000", "http://localhost:3000/api http://127.0.0.1:3000"],
      ["http://[::1]:80/api http://[0:0::1]/flows/", "http://[::1]/api http://[::1]/flows"],
    ] as const) {
      const [base = "", flows = ""] = written.split(" ")
      const expected = meant.split(" ")
      expect(yield* resolved(base, flows)).toEqual([...expected, expected[1]])
    }
  })

  effect("may name the flow API by its path alone, on the host of the other API", function* () {
    for (const [base, flows, expected] of [
      ["http://localhost:3000", "/api/flows", "http://localhost:3000/api/flows"],
      ["https://a.example:8443/api/v1/", "/api/flows/", "https://a.example:8443/api/flows"],
      ["http://[::1]:3000/x", "/", "http://[::1]:3000"],
      ["https://a.example/api", "/x/../flows", "https://a.example/flows"],
    ] as const)
      expect((yield* resolved(base, flows))[1]).toBe(expected)
    expect(yield* resolved("https://a.example/api", "/flows", "/documents")).toEqual([
      "https://a.example/api",
      "https://a.example/flows",
      "https://a.example/documents",
    ])
  })

  effect(
    "that are a path follow the host that the environment puts in, and a wrong one is refused by its variable",
    function* () {
      const text = jobText('base_url: "https://a.example/api", flows_url: /api/flows')
      const environment = { NIGHTJAR_BASE_URL: "http://127.0.0.1:9000/api" }
      const { job } = yield* load(text, { environment })
      expect(decodeAddresses(job).service).toMatchObject({ flows_url: "http://127.0.0.1:9000/api/flows" })
      const both = { ...environment, NIGHTJAR_FLOWS_URL: "/flows/" }
      const again = yield* load(text, { environment: both })
      expect(decodeAddresses(again.job).service).toMatchObject({
        flows_url: "http://127.0.0.1:9000/flows",
      })
      const { errors } = yield* load(text, { environment: { NIGHTJAR_FLOWS_URL: "//evil.example" } })
      expect(errors).toEqual([`job.yaml:2:10: NIGHTJAR_FLOWS_URL: expected ${pathRule}`])
    },
  )

  effect("are refused if they could show the secret to another machine", function* () {
    const foreign =
      "//evil.example/flows /\\\\evil.example /flows?x=1 /flows#x flows ./flows http://service.example/flows " +
      "http://evil.localhost/flows http://localhost.evil.example/flows http://127.0.0.1.evil.example/flows " +
      "http://0.0.0.0/flows http://[::]/flows http://[::2]/flows ftp://localhost/flows https://u:p@a.example/flows https:///"
    for (const flows of foreign.split(" "))
      expect([flows, yield* resolved("https://a.example/api", flows)]).toEqual([
        flows,
        [expect.stringContaining(`expected ${pathRule}`)],
      ])
    expect(yield* resolved("/api", "/flows")).toEqual([expect.stringContaining(`expected ${rule}`)])
  })
})
