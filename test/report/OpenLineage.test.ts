/**
 * Runs as OpenLineage events: their form is the specification's, every end has its event, and nobody is named in them.
 */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, type Layer } from "effect"
import { stableUuid } from "../../src/base/Hashes.ts"
import type { Fact } from "../../src/ledger/Fact.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { publishedTables } from "../../src/tables/DataDictionary.ts"
import { readManifest } from "../../src/tables/Manifest.ts"
import { lineageEvents } from "../../src/report/OpenLineage.ts"
import { anId } from "../harness/Id.ts"
import {
  append,
  begin,
  engine,
  folder,
  layers,
  profileOf,
  publish,
  resultsOf,
  rowsOf,
  storeOf,
  succeed,
} from "../tables/night.ts"

/**
 * What the specification (2-0-2 and its facets) asks for, as far as these events use it, written by hand, and closed: a
 * key that it does not know is refused.
 */
const time = Schema.String.check(Schema.isPattern(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/))
const uri = Schema.String.check(Schema.isPattern(/^[a-z][a-z0-9+.-]*:\S+$/))
const uuid = Schema.String.check(Schema.isPattern(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/))
const facet = <Fields extends Schema.Struct.Fields>(name: string, fields: Fields) =>
  Schema.Struct({
    _producer: uri,
    _schemaURL: uri.check(Schema.isPattern(new RegExp(`/${name}\\.json#/\\$defs/${name}$`))),
    ...fields,
  })
const Event = Schema.Struct({
  eventType: Schema.Literals(["START", "COMPLETE", "FAIL", "ABORT"]),
  eventTime: time,
  run: Schema.Struct({
    runId: uuid,
    facets: Schema.Struct({
      nominalTime: facet("NominalTimeRunFacet", { nominalStartTime: time, nominalEndTime: time }),
      processing_engine: facet("ProcessingEngineRunFacet", { name: Schema.String, version: Schema.String }),
      errorMessage: Schema.optionalKey(
        facet("ErrorMessageRunFacet", { message: Schema.String, programmingLanguage: Schema.String }),
      ),
    }),
  }),
  job: Schema.Struct({
    namespace: Schema.String,
    name: Schema.String,
    facets: Schema.Struct({
      jobType: facet("JobTypeJobFacet", { processingType: Schema.String, integration: Schema.String }),
    }),
  }),
  inputs: Schema.Array(Schema.Struct({ namespace: Schema.String, name: Schema.String })),
  outputs: Schema.Array(
    Schema.Struct({
      namespace: uri,
      name: Schema.String,
      facets: Schema.Struct({
        schema: facet("SchemaDatasetFacet", {
          fields: Schema.Array(
            Schema.Struct({ name: Schema.String, type: Schema.String, description: Schema.String }),
          ),
        }),
      }),
      outputFacets: Schema.Struct({
        outputStatistics: facet("OutputStatisticsOutputDatasetFacet", {
          rowCount: Schema.Int,
          size: Schema.Int,
        }),
      }),
    }),
  ),
  producer: uri,
  schemaURL: Schema.Literal("https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"),
})

const run = "nightly.2026-11-20"
const run_id = anId(run)

const eventsOf = Effect.fnUntraced(function* (root: string, isSuperseded = false) {
  const { families } = yield* storeOf(root)
  const state = yield* Effect.flatMap(Ledger, (ledger) => ledger.state(run_id))
  if (state === undefined) throw new Error("no such run")
  const files = readManifest(join(root, "tables/manifest.json"))?.runs[run]?.files ?? []
  const source = { output: "/data", toolVersion: "0.1.0", tables: publishedTables(families) }
  const written: unknown = JSON.parse(
    JSON.stringify(lineageEvents(source, { state, files, isSuperseded, newest_at: Date.now() })),
  )
  return yield* Schema.decodeUnknownEffect(Schema.Array(Event))(written, { onExcessProperty: "error" })
})

const ended = (exit_code: number): Fact => ({
  _tag: "RunEnded",
  run_id,
  exit_code,
  leftovers: false,
  kept: 0,
})
const held: Fact = {
  _tag: "RunHeld",
  run_id,
  database: "published/held/1.duckdb",
  gates: [{ gate: "rows of emails", expected: "at least 5", found: "2" }],
}

const inFolder = <A, E>(
  work: (root: string) => Effect.Effect<A, E, Layer.Success<ReturnType<typeof layers>>>,
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const root = yield* folder
      return yield* Effect.provide(work(root), layers(root))
    }),
  )

describe("the events of a run", () => {
  it.live("have the form of the specification, and name engines, tables and counts, but no customer", () =>
    inFolder((root) =>
      Effect.gen(function* () {
        yield* append([begin(run, "2026-11-20")])
        yield* succeed(run, "n-1", "customer-of-ours", resultsOf(profileOf("Anastasia")))
        const going = yield* eventsOf(root)
        yield* publish(run)
        yield* append([ended(3)])
        const [start, end, ...more] = yield* eventsOf(root)
        assert.deepStrictEqual([[start], more], [going, []])
        const inputs = [{ namespace: "extraction-service", name: engine }]
        const _producer = "urn:nightjar:0.1.0"
        const facet = (version: string, name: string, fields: object) => {
          const _schemaURL = `https://openlineage.io/spec/facets/${version}/${name}.json#/$defs/${name}`
          return { _producer, _schemaURL, ...fields }
        }
        assert.deepStrictEqual({ ...start, eventTime: "", run: { ...start?.run, runId: "" } }, {
          eventType: "START",
          eventTime: "",
          run: {
            runId: "",
            facets: {
              nominalTime: facet("1-0-1", "NominalTimeRunFacet", {
                nominalStartTime: "2026-11-20T00:00:00.000Z",
                nominalEndTime: "2026-11-21T00:00:00.000Z",
              }),
              processing_engine: facet("1-1-1", "ProcessingEngineRunFacet", {
                name: "nightjar",
                version: "0.1.0",
              }),
            },
          },
          job: {
            namespace: "nightjar",
            name: "nightly",
            facets: {
              jobType: facet("2-0-3", "JobTypeJobFacet", {
                processingType: "BATCH",
                integration: "NIGHTJAR",
              }),
            },
          },
          inputs,
          outputs: [],
          producer: _producer,
          schemaURL: "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        } as unknown as typeof start)
        assert.deepStrictEqual(
          [end?.eventType, end?.run.runId, end?.run.facets, end?.inputs],
          ["COMPLETE", start?.run.runId, start?.run.facets, inputs],
        )
        const counted: Array<readonly [string, string, unknown]> = []
        for (const { namespace, name, outputFacets } of end?.outputs ?? []) {
          const table = name.replace("nightjar.", "")
          const rows = yield* rowsOf(root, `SELECT count(*)::INTEGER AS n FROM ${table}`)
          counted.push([namespace, table, rows[0]?.["n"]])
          assert.deepStrictEqual([table, outputFacets.outputStatistics.rowCount], [table, rows[0]?.["n"]])
          assert.isAbove(outputFacets.outputStatistics.size, 100)
        }
        const space = "duckdb:///data/nightjar.duckdb"
        assert.deepInclude(counted, [space, "ops.tasks", 1])
        assert.deepInclude(counted, [space, "nights.emails", 1])
        const emails = end?.outputs.find(({ name }) => name === "nightjar.nights.emails")
        assert.deepInclude(emails?.facets.schema.fields ?? [], {
          name: "run_id",
          type: "VARCHAR",
          description: "The run that read the record.",
        })
        assert.notMatch(JSON.stringify([start, end]), /customer-of-ours|Anastasia|e-n-1|s-n-1/)
      }),
    ),
  )

  it.live.each([
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
  ] as const)("of a run that %s say so", ([, facts, isSuperseded, types, message]) =>
    inFolder((root) =>
      Effect.gen(function* () {
        yield* append([begin(run, "2026-11-20"), ...facts])
        const events = yield* eventsOf(root, isSuperseded)
        assert.deepStrictEqual(
          events.map(({ eventType, outputs }) => `${eventType} ${outputs.length}`),
          ["START", ...types].map((type) => `${type} 0`),
        )
        assert.strictEqual(events.at(-1)?.run.facets.errorMessage?.message, message)
      }),
    ),
  )

  it.live("end when a run that was held back becomes current after all", () =>
    inFolder((root) =>
      Effect.gen(function* () {
        yield* append([begin(run, "2026-11-20"), held, ended(3)])
        const [, failed] = yield* eventsOf(root)
        yield* succeed(run, "n-1", "c-1", resultsOf(profileOf("Ana")))
        yield* publish(run)
        const [start, completed] = yield* eventsOf(root)
        assert.deepStrictEqual([failed?.eventType, completed?.eventType], ["FAIL", "COMPLETE"])
        assert.deepStrictEqual(failed?.run.runId, start?.run.runId)
        assert.isAbove(Date.parse(completed?.eventTime ?? ""), Date.parse(failed?.eventTime ?? ""))
      }),
    ),
  )

  it("have an id as RFC 9562 makes it of a name", () => {
    const dns = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
    assert.strictEqual(stableUuid(dns, "www.example.com"), "2ed6657d-e927-568b-95e1-2665a8aea6a2")
  })
})
