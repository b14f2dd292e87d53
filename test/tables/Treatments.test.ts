/** The decisions about each column where tables have pseudonyms: that there is one, and what a reader is told. */
import { hash } from "node:crypto"
import { Redacted } from "effect"
import { describe, expect, it } from "vitest"
import { publishedTables, publishedViews } from "../../src/tables/DataDictionary.ts"
import { disguiseOf } from "../../src/tables/Disguise.ts"
import {
  columnTroubles,
  inOrder,
  isSamePolicy,
  readPseudonymKey,
  shownTable,
  treatmentOf,
} from "../../src/tables/Treatments.ts"
import { systemTables } from "../../src/tables/SystemTables.ts"
import { column, type TableSpec } from "../../src/records/Columns.ts"
import { otherRecordsTable, rejectedRecordsTable } from "../../src/records/RecordTables.ts"
import { families } from "../records/families.ts"

const policy = { check: "", columns: { customer_profiles: ["name"], emails: ["email"] } }
const spelled = (bytes: Uint8Array) => Redacted.make(Buffer.from(bytes).toString("hex"))
const random = Buffer.from(hash("sha256", "a", "hex"), "hex")

/** Every column that is not shown as it is, by its treatment. */
const treated = (tables: ReadonlyArray<TableSpec>) =>
  tables.flatMap(({ name, columns }) =>
    columns.flatMap((each) => {
      const treatment = treatmentOf(policy, name, each)
      return treatment === "own" || treatment === "clear" ? [] : [`${name}.${each.name}: ${treatment}`]
    }),
  )

describe("what becomes of a column", () => {
  it("is declared with each of the system's", () => {
    const everyTask = ["task_id: task", "customer_id: customer_id"]
    const withSession = systemTables.filter(({ columns }) =>
      columns.some(({ name }) => name === "session_id"),
    )
    const withTask = systemTables.filter(({ columns }) => columns.some(({ name }) => name === "task_id"))
    expect(treated(systemTables).toSorted()).toEqual(
      [
        ...withTask.flatMap(({ name }) => everyTask.map((each) => `${name}.${each}`)),
        ...withSession.map(({ name }) => `${name}.session_id: session`),
        "executions.locking_hash: locking_hash",
        "executions.status_message: withheld",
        "executions.extra: withheld",
        "execution_features.status_message: withheld",
        "execution_messages.loc: withheld",
        "execution_messages.message: withheld",
        "execution_errors.loc: withheld",
        "execution_errors.msg: withheld",
        "execution_errors.ctx: withheld",
        "sessions.extra: withheld",
        "consents.user_ip: consent",
        "consents.user_agent: consent",
        "consents.origin: consent",
        "consents.extra: withheld",
        "consent_documents.hash: consent",
        "consent_documents.signature_metadata: withheld",
        "consent_documents.extra: withheld",
        "documents.record_id: record_id",
        "documents.title: withheld",
        "deletions.landed_sha256: landed_sha256",
      ].toSorted(),
    )
  })

  it("is, in tables of records, as the job chose; what no column holds is withheld", () => {
    const profiles = publishedTables(families).filter(({ name }) => name === "customer_profiles")
    expect(treated([...profiles, otherRecordsTable, rejectedRecordsTable])).toEqual(
      [
        ["customer_profiles", "name: value", "extra: withheld"],
        ["other_records", "record: withheld"],
        ["rejected_records", "path: withheld", "record: withheld"],
      ].flatMap(([table, ...own]) =>
        [
          "task_id: task",
          "session_id: session",
          "customer_id: customer_id",
          "record_id: record_id",
          "content_id: content_id",
          ...own,
        ].map((each) => `${table}.${each}`),
      ),
    )
  })

  it("is told to whoever reads a table or a view of it, and a withheld column may be NULL", () => {
    const told = (schema: string, name: string) =>
      publishedViews(families, policy)
        .find((one) => one.schema === schema && one.name === name)
        ?.columns.flatMap(({ name: own, comment }) => (comment.endsWith(" A pseudonym.") ? [own] : []))
    const ids = ["customer_id", "record_id", "content_id"]
    expect(told("nights", "emails")).toEqual([...ids, "email"])
    expect(told("main", "emails")).toEqual([...ids.slice(0, 2), "email"])
    expect(told("history", "customer_profiles")).toEqual([...ids.slice(0, 2), "name", "content_id"])
    expect(told("main", "customers")).toEqual(["customer_id"])
    const record = shownTable(policy, otherRecordsTable).columns.find(({ name }) => name === "record")
    expect(record?.nullable).toBe(true)
    expect(publishedTables(families, undefined)).toEqual(publishedTables(families))
  })

  it("can be a pseudonym only for text of a table that there is, and is compared whatever its order", () => {
    expect(
      columnTroubles(
        { customer_profiles: ["name", "birth_date"], emails: ["emial"], executions: ["app_id"] },
        families,
      ).map(({ table, column: name, why }) => `${table} ${name}: ${why}`),
    ).toEqual([
      "customer_profiles birth_date: it is DATE, and a pseudonym is text: only VARCHAR and VARCHAR[] can be",
      "emails emial: its record schema has no column of this name; did you mean `email`?",
      "executions undefined: no record schema has a table of this name",
    ])
    const one = { check: "c", columns: inOrder({ b: ["y", "x", "x"], a: ["z"], c: [] }) }
    expect(isSamePolicy(one, { check: "c", columns: inOrder({ a: ["z"], b: ["x", "y"] }) })).toBe(true)
    expect(isSamePolicy(one, { ...one, check: "d" })).toBe(false)
  })
})

describe("a key", () => {
  it("is 32 random bytes; what is no text gets no pseudonym, and kinds have different ones", () => {
    expect(readPseudonymKey(spelled(new Uint8Array(32)))).toBeUndefined()
    expect(readPseudonymKey(spelled(Buffer.from("0123456789abcde".repeat(3).slice(0, 32))))).toBeUndefined()
    expect(readPseudonymKey(Redacted.make("hunter2"))).toBeUndefined()
    const key = readPseudonymKey(spelled(random))!
    // As they are in tables of every version: this text never changes.
    expect(key.pseudonymOf("customer_id", "c-0001")).toBe("d09ce5794505d5947682639032c4778e")
    expect(key.pseudonymOf("value", "c-0001")).not.toBe(key.pseudonymOf("customer_id", "c-0001"))
    const { mask } = disguiseOf(
      { check: "", columns: { t: ["a", "b"] } },
      key,
      new Map(),
    )({
      name: "t",
      comment: "",
      key: [],
      columns: [
        column("a", "INTEGER", "clear", ""),
        column("b", "VARCHAR[]", "clear", ""),
        column("d", "VARCHAR", "clear", ""),
      ],
    })
    const of = (text: string) => key.pseudonymOf("value", text)
    expect(
      mask([
        [7, null],
        [["x", "y"], null],
        ["c-0001", null],
      ]),
    ).toEqual([
      [null, null],
      [[of("x"), of("y")], null],
      ["c-0001", null],
    ])
  })
})
