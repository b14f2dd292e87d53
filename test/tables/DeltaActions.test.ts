/** What is written to a Delta log: every change between what it says and what is published, and nothing else. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  actionsIn,
  checkpointOf,
  filesForLogs,
  hasColumnsOf,
  nextActions,
  replay,
} from "../../src/tables/DeltaActions.ts"
import type { Action, DeltaState } from "../../src/tables/DeltaActions.ts"
import type { Manifest } from "../../src/tables/Manifest.ts"
import { column, required } from "../../src/records/Columns.ts"
import type { TableSpec } from "../../src/records/Columns.ts"

const spec: TableSpec = {
  name: "t",
  comment: "A table.",
  columns: [required("run_id", "VARCHAR", "The run."), required("run_date", "DATE", "Its date.")],
}
const wider: TableSpec = { ...spec, columns: [...spec.columns, column("more", "VARCHAR[]", "More.")] }

const fileOf = (name: string, run_date: string, rows = 2, bytes = 10) => ({
  table: "t",
  path: `tables/t/run_date=${run_date}/${name}.parquet`,
  rows,
  bytes,
  sha256: "aa",
})
type Files = Manifest["runs"][string]["files"]
const manifestOf = (
  runs: Readonly<Record<string, Files>>,
  interim: ReadonlyArray<string> = [],
): Manifest => ({
  version: 7,
  amends: false,
  runs: Object.fromEntries(
    Object.entries(runs).map(([run_id, files]) => [
      run_id,
      {
        run_date: run_id.slice(-10),
        version: 1,
        ...(interim.includes(run_id) ? { interim: true as const } : {}),
        files,
      },
    ]),
  ),
})
const [first, second] = ["n.2026-11-20", "n.2026-11-21"] as const
const [a, b] = [fileOf("a", "2026-11-20"), fileOf("b", "2026-11-21")]

const commit = (state: DeltaState | undefined, manifest: Manifest, table = spec, at = 5) =>
  nextActions(
    { state, spec: table, files: filesForLogs(manifest).get("t") ?? [] },
    { at, version: manifest.version, tool: "0.1.0" },
  )
const after = (state: DeltaState | undefined, actions: ReadonlyArray<Action>): DeltaState | undefined =>
  actions.length === 0
    ? state
    : replay((state?.version ?? -1) + 1, [...(state === undefined ? [] : checkpointOf(state)), ...actions])
const changesIn = (actions: ReadonlyArray<Action>) => {
  const texts = actions.map((action) =>
    "add" in action
      ? `+${action.add.path}`
      : "remove" in action
        ? `-${action.remove.path}`
        : Object.keys(action)[0],
  )
  return texts.join(" ")
}
const info = {
  commitInfo: {
    timestamp: 5,
    operation: "WRITE",
    operationParameters: {},
    engineInfo: "nightjar/0.1.0",
    userMetadata: "nightjar version 7",
  },
}
const statsOf = (date: string, rows: object = { numRecords: 2 }, until = date) =>
  JSON.stringify({
    ...rows,
    minValues: { run_date: date },
    maxValues: { run_date: until },
    nullCount: { run_date: 0 },
  })

describe("a commit", () => {
  it("describes a new table, and its files without a value of a record", () => {
    const [told, protocol, described, ...files] = commit(undefined, manifestOf({ [first]: [a] }))
    assert.deepStrictEqual<unknown>(
      [told, protocol, files],
      [
        info,
        { protocol: { minReaderVersion: 1, minWriterVersion: 2 } },
        [
          {
            add: {
              path: "run_date=2026-11-20/a.parquet",
              partitionValues: {},
              size: 10,
              modificationTime: 5,
              dataChange: true,
              stats: statsOf("2026-11-20"),
            },
          },
        ],
      ],
    )
    assert.isTrue(described !== undefined && "metaData" in described)
    if (described === undefined || !("metaData" in described)) return
    const { id, schemaString, ...rest } = described.metaData
    assert.match(id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    assert.deepStrictEqual(JSON.parse(schemaString), {
      type: "struct",
      fields: [
        { name: "run_id", type: "string", nullable: true, metadata: { comment: "The run." } },
        { name: "run_date", type: "date", nullable: true, metadata: { comment: "Its date." } },
      ],
    })
    assert.deepStrictEqual<unknown>(rest, {
      name: "t",
      description: "A table.",
      format: { provider: "parquet", options: {} },
      partitionColumns: [],
      configuration: {},
      createdTime: 5,
    })
  })

  it("has every type that a column may have", () => {
    const types = ["VARCHAR", "BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "DECIMAL(18,2)", "DATE"] as const
    const columns = [...types, "TIMESTAMPTZ" as const, "VARCHAR[]" as const, "JSON" as const]
    const table = { ...spec, columns: columns.map((type) => column(type, type, "")) }
    const described = commit(undefined, manifestOf({}), table).find((action) => "metaData" in action)
    const schema = JSON.parse(described?.metaData.schemaString ?? "") as {
      readonly fields: ReadonlyArray<{ readonly type: unknown }>
    }
    assert.deepStrictEqual(
      schema.fields.map(({ type }) => type),
      [
        "string",
        "boolean",
        "integer",
        "long",
        "double",
        "decimal(18,2)",
        "date",
        "timestamp",
        { type: "array", elementType: "string", containsNull: true },
        "string",
      ],
    )
  })

  it("is not written if nothing has changed, and is what has changed, however many versions are between", () => {
    const begun = after(undefined, commit(undefined, manifestOf({ [first]: [a] })))
    assert.deepStrictEqual(commit(begun, manifestOf({ [first]: [a] })), [])
    const later = commit(begun, manifestOf({ [second]: [b] }))
    const gone = { path: "run_date=2026-11-20/a.parquet", deletionTimestamp: 5, dataChange: true }
    assert.deepStrictEqual<unknown>(later.slice(0, 2), [info, { remove: gone }])
    assert.strictEqual(
      changesIn(later),
      "commitInfo -run_date=2026-11-20/a.parquet +run_date=2026-11-21/b.parquet",
    )
    const back = after(after(begun, later), commit(after(begun, later), manifestOf({ [first]: [a] })))
    assert.deepStrictEqual(back?.files, begun?.files)
    assert.strictEqual(back?.version, 2)
  })

  it("names a file again that is another one now, and one of several runs once, without its rows", () => {
    const begun = after(undefined, commit(undefined, manifestOf({ [first]: [a] })))
    const longer = commit(begun, manifestOf({ [first]: [{ ...a, bytes: 11 }] }))
    assert.strictEqual(changesIn(longer), "commitInfo +run_date=2026-11-20/a.parquet")
    const both = manifestOf({ [second]: [a], [first]: [a], "n.2026-11-19": [a] })
    const [, shared, ...others] = commit(begun, both)
    assert.deepStrictEqual(others, [])
    assert.deepInclude(shared !== undefined && "add" in shared ? shared.add : {}, {
      stats: statsOf("2026-11-19", {}, "2026-11-21"),
    })
  })

  it("leaves out a run that is not over, also where it takes the place of one that was published", () => {
    const begun = after(undefined, commit(undefined, manifestOf({ [first]: [a], [second]: [b] })))
    assert.deepStrictEqual(commit(begun, manifestOf({ [first]: [a], [second]: [b], x: [] }, ["x"])), [])
    assert.strictEqual(
      changesIn(commit(begun, manifestOf({ [first]: [a], [second]: [b] }, [second]))),
      "commitInfo -run_date=2026-11-21/b.parquet",
    )
  })

  it("describes the table again when it has another column, under the same id", () => {
    const begun = after(undefined, commit(undefined, manifestOf({ [first]: [a] })))
    const wide = commit(begun, manifestOf({ [first]: [a] }), wider, 6)
    assert.strictEqual(changesIn(wide), "commitInfo metaData")
    const now = after(begun, wide)
    assert.strictEqual(now?.metaData.id, begun?.metaData.id)
    assert.deepStrictEqual(
      [begun, now].map((state) => state !== undefined && hasColumnsOf(state, wider)),
      [false, true],
    )
    const other = after(
      undefined,
      nextActions({ state: undefined, spec, files: [] }, { at: 6, version: 1, tool: "" }),
    )
    assert.notStrictEqual(other?.metaData.id, begun?.metaData.id)
  })

  it("makes of any log what is published, in any order of versions", () => {
    const days = ["2026-11-20", "2026-11-21", "2026-11-22"]
    const file = fc.record({ name: fc.constantFrom("a", "b", "c"), bytes: fc.integer({ min: 1, max: 2 }) })
    const run = fc.uniqueArray(file, { selector: ({ name }) => name, maxLength: 3 })
    const version = fc.array(run, { minLength: 3, maxLength: 3 })
    fc.assert(
      fc.property(fc.array(version, { maxLength: 6 }), (versions) => {
        let state: DeltaState | undefined
        for (const runs of versions) {
          const files = runs.map((own, day) =>
            own.map(({ name, bytes }) => fileOf(`${name}${day}`, days[day] ?? "", 1, bytes)),
          )
          const manifest = manifestOf(Object.fromEntries(files.map((own, day) => [`n.${days[day]}`, own])))
          state = after(state, commit(state, manifest))
          assert.deepStrictEqual(
            [...(state?.files.values() ?? [])].map(({ path, size }) => `${path} ${size}`).toSorted(),
            files
              .flat()
              .map(({ path, bytes }) => `${path.slice("tables/t/".length)} ${bytes}`)
              .toSorted(),
          )
          assert.deepStrictEqual(commit(state, manifest), [])
        }
      }),
    )
  })
})

describe("a log that was read", () => {
  const whole = commit(undefined, manifestOf({ [first]: [a] }))

  it("is made of actions as they are written here, and of no others", () => {
    assert.deepStrictEqual(actionsIn(whole), whole)
    const [, protocol] = whole
    const strange: ReadonlyArray<unknown> = [
      { txn: { appId: "x", version: 1 } },
      { protocol: { minReaderVersion: 3, minWriterVersion: 7, readerFeatures: ["deletionVectors"] } },
      { add: { ...(whole[3] as { add: object }).add, deletionVector: {} } },
      { ...protocol, extra: 1 },
      undefined,
    ]
    for (const action of strange) assert.isUndefined(actionsIn([...whole, action]))
  })

  it("describes no table without its description or its protocol", () => {
    assert.isUndefined(
      replay(
        0,
        whole.filter((action) => !("protocol" in action)),
      ),
    )
    assert.isUndefined(
      replay(
        0,
        whole.filter((action) => !("metaData" in action)),
      ),
    )
    assert.deepStrictEqual(replay(3, checkpointOf(replay(3, whole)!)), replay(3, whole))
  })
})
