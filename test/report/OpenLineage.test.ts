/**
 * Runs as OpenLineage events: their form is the specification's (2-0-2 and its facets), every end has its event, and
 * nobody is named in them.
 */
import { describe, expect, it } from "vitest"
import { stableUuid } from "../../src/base/Hashes.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { lineageEvents } from "../../src/report/OpenLineage.ts"
import type { ManifestFile } from "../../src/tables/Manifest.ts"
import { executed, planned, run_id, runOf, settled } from "./Samples.ts"

const column = { name: "run_id", type: "VARCHAR", comment: "The run.", nullable: false } as const
const table = (name: string) => ({ name, comment: "", columns: [column] }) as never
const source = { output: "/data", toolVersion: "0.2.0", tables: ["tasks", "emails", "phones"].map(table) }
const files: ReadonlyArray<ManifestFile> = (
  [
    ["emails", 2, 300],
    ["emails", 1, 200],
    ["tasks", 1, 100],
  ] as const
).map(([name, rows, bytes], index) => ({ table: name, path: `${index}`, rows, bytes, sha256: "aa" }))

const eventsOf = (facts: ReadonlyArray<Fact>, isSuperseded = false) =>
  lineageEvents(source, { state: runOf(...facts), files, isSuperseded, newest_at: Date.UTC(2026, 10, 22) })

const ended = (exit_code: number): Fact => ({ _tag: "RunEnded", run_id, exit_code, leftovers: false })
const published: Fact = { _tag: "RunPublished", run_id, version: 1, receipts: [] }
const held: Fact = {
  _tag: "RunHeld",
  run_id,
  database: "published/held/1.duckdb",
  gates: [{ gate: "rows of emails", expected: "at least 5", found: "2" }],
}
const read = [planned("c-1"), ...executed("c-1", {}), settled("c-1", "failed", "FAILED", "engineer")]

const facet = (version: string, name: string, fields: object) => ({
  _producer: "urn:nightjar:0.2.0",
  _schemaURL: `https://openlineage.io/spec/facets/${version}/${name}.json#/$defs/${name}`,
  ...fields,
})
const written = (name: string, rowCount: number, size: number) => ({
  namespace: "duckdb:///data/nightjar.duckdb",
  name: `nightjar.${name}`,
  facets: {
    schema: facet("1-1-1", "SchemaDatasetFacet", {
      fields: [{ name: "run_id", type: "VARCHAR", description: "The run." }],
    }),
  },
  outputFacets: {
    outputStatistics: facet("1-0-2", "OutputStatisticsOutputDatasetFacet", { rowCount, size }),
  },
})

describe("the events of a run", () => {
  it("have the form of the specification, and name engines, tables and counts, but no customer", () => {
    const events = eventsOf([...read, published, ended(3)])
    const common = {
      run: {
        runId: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/) as unknown,
        facets: {
          nominalTime: facet("1-0-1", "NominalTimeRunFacet", {
            nominalStartTime: "2026-11-21T00:00:00.000Z",
            nominalEndTime: "2026-11-22T00:00:00.000Z",
          }),
          processing_engine: facet("1-1-1", "ProcessingEngineRunFacet", {
            name: "nightjar",
            version: "0.1.0",
          }),
        },
      },
      job: {
        namespace: "nightjar",
        name: "demo",
        facets: {
          jobType: facet("2-0-3", "JobTypeJobFacet", { processingType: "BATCH", integration: "NIGHTJAR" }),
        },
      },
      inputs: [{ namespace: "extraction-service", name: "bank:website" }],
      producer: "urn:nightjar:0.2.0",
      schemaURL: "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    }
    const outputs = [written("ops.tasks", 1, 100), written("nights.emails", 3, 500)]
    expect(events).toEqual([
      { ...common, eventType: "START", eventTime: "2026-11-21T02:00:00.000Z", outputs: [] },
      { ...common, eventType: "COMPLETE", eventTime: "2026-11-21T02:00:07.000Z", outputs },
    ])
    expect(events[1]?.run.runId).toBe(events[0]?.run.runId)
    expect(JSON.stringify(events)).not.toContain("c-1")
    expect(eventsOf(read)).toEqual(events.slice(0, 1))
  })

  it.each([
    ["may still go on", [], false, [], undefined],
    ["was interrupted, and another run of the job began", [], true, ["ABORT"], undefined],
    [
      "found no service that it could use",
      [ended(6)],
      true,
      ["FAIL"],
      "The service could not be used: nothing was started",
    ],
    ["could not publish its tables", [ended(4)], true, ["FAIL"], "No tables were published"],
    [
      "is held back by a gate",
      [held, ended(3)],
      true,
      ["FAIL"],
      "A gate holds the tables back: rows of emails: expected at least 5, found 2",
    ],
  ] as const)("of a run that %s say so", (_, facts, isSuperseded, types, message) => {
    const events = eventsOf(facts, isSuperseded)
    expect(events.map(({ eventType, outputs }) => [eventType, outputs])).toEqual(
      ["START", ...types].map((type) => [type, []]),
    )
    const told = facet("1-0-1", "ErrorMessageRunFacet", { message, programmingLanguage: "TypeScript" })
    expect(Object.entries(events.at(-1)!.run.facets).slice(2)).toEqual(
      message === undefined ? [] : [["errorMessage", told]],
    )
  })

  it("end when a run that was held back becomes current after all", () => {
    const [start, end] = eventsOf([held, ended(3), published])
    expect([end?.eventType, end?.eventTime, end?.run.runId]).toEqual([
      "COMPLETE",
      "2026-11-21T02:00:03.000Z",
      start?.run.runId,
    ])
  })

  it("have an id as RFC 9562 makes it of a name", () => {
    const dns = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
    expect(stableUuid(dns, "www.example.com")).toBe("2ed6657d-e927-568b-95e1-2665a8aea6a2")
  })
})
