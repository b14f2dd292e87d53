/**
 * `nightjar infer`: drafts a record schema for each family that has none, from its records in the published
 * tables. Writes to stdout and changes nothing: whoever takes a draft puts it into the job's `schemas`.
 */
import { Effect, Option, Schema, Stream } from "effect"
import type { Connection } from "../../base/DuckDb.ts"
import { counted, suggestion } from "../../base/Text.ts"
import { command } from "../CommandRow.ts"
import { optionalFlag } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { familiesOf, policyOf } from "../LookAtFolder.ts"
import { note, say, warn } from "../Output.ts"
import { withPublished } from "../PublishedDatabase.ts"
import { KeyCandidates, draftSchema, draftText, observerOf, reviseSchema } from "../../records/DraftSchema.ts"
import type { Draft } from "../../records/DraftSchema.ts"
import { parseBody } from "../../records/FindRecords.ts"
import type { RecordFamily } from "../../records/RecordSchema.ts"
import { SeenObject } from "../../records/SeenFields.ts"
import { publishedTables, publishedViews } from "../../tables/DataDictionary.ts"
import { feedersOf } from "../../tables/CoverageRows.ts"

// Drafts of record schemas from what is published: one for each product in `other_records`, and one for each
// schema in force that rejected records, changed so that it takes them. Reads the database, and no more than
// the newest records of each.

/** Of one draft; more records say little more. */
const recordsMax = 200_000
/** Far more kinds of records than any service has. */
const kindsMax = 10_000

const columns = "run_date, run_id, task_id, session_id, customer_id, product, sub_family, record"
const sourceSql = `(
  SELECT 'other_records' AS source, ${columns} FROM other_records
  UNION ALL
  SELECT 'rejected_records', ${columns}
  FROM rejected_records WHERE record IS NOT NULL AND json_type(record) = 'OBJECT'
)`

const kindsSql = `
  SELECT source, product, sub_family, count(*)::INTEGER AS records FROM ${sourceSql}
  WHERE product <> '' AND sub_family <> '' GROUP BY ALL ORDER BY ALL LIMIT ${kindsMax}`
const Kinds = Schema.Array(
  Schema.Struct({
    source: Schema.Literals(["other_records", "rejected_records"]),
    product: Schema.String,
    sub_family: Schema.String,
    records: Schema.Int,
  }),
)
export type Kind = (typeof Kinds.Type)[number]

const chosen = `source IN (SELECT unnest($1::VARCHAR[])) AND product = $2
  AND sub_family IN (SELECT unnest($3::VARCHAR[]))`

/** The newest records; those of one answer and kind stand together. */
const recordsSql = `
  SELECT concat_ws(' ', run_id, task_id, session_id, sub_family), customer_id, record::VARCHAR FROM (
    SELECT * FROM ${sourceSql} WHERE ${chosen} ORDER BY run_date DESC, run_id DESC LIMIT ${recordsMax}
  ) ORDER BY run_date, run_id, task_id, session_id, sub_family`

const featuresSql = `
  WITH holding AS (SELECT DISTINCT run_id, task_id FROM ${sourceSql} WHERE ${chosen})
  SELECT feature, count(DISTINCT (run_id, task_id))::INTEGER AS tasks,
    (SELECT count(*) FROM holding)::INTEGER AS held
  FROM coverage JOIN holding USING (run_id, task_id)
  WHERE feature <> '' GROUP BY ALL ORDER BY feature LIMIT ${kindsMax}`
const Features = Schema.Array(Schema.Struct({ feature: Schema.String, tasks: Schema.Int, held: Schema.Int }))

/** Rows of our own statements: others would be a defect. */
const decoded = <A>(schema: Schema.ConstraintDecoder<A>, rows: unknown) =>
  Effect.orDie(Schema.decodeUnknownEffect(schema)(rows))

/** What one draft is made from. */
interface Basis {
  readonly product: string
  readonly sub_families: ReadonlyArray<string>
  readonly sources: ReadonlyArray<string>
  readonly records: number
  /** The schema that rejected the records, if there is one. */
  readonly family: RecordFamily | undefined
}

export interface WrittenDraft {
  readonly table: string
  readonly product: string
  readonly sub_families: ReadonlyArray<string>
  readonly records: number
  readonly notes: ReadonlyArray<string>
  readonly schema: Draft["file"]
  readonly yaml: string
}

export interface Families {
  readonly bases: ReadonlyArray<Basis>
  /** Records from before their family had a schema. */
  readonly waiting: number
}

/** Which drafts the kinds of records need. Pure. */
export const basesOf = (kinds: ReadonlyArray<Kind>, families: ReadonlyArray<RecordFamily>): Families => {
  const bases = new Map<string, Basis>()
  let waiting = 0
  for (const { source, product, sub_family, records } of kinds) {
    const family = families.find((each) => each.product === product && each.subFamilies.includes(sub_family))
    if (family !== undefined && source === "other_records") {
      waiting += records
      continue
    }
    const name = `${family?.table ?? ""} ${product}`
    const before = bases.get(name)
    bases.set(name, {
      product,
      sub_families: [...new Set([...(before?.sub_families ?? []), sub_family])],
      sources: [...new Set([...(before?.sources ?? []), source])],
      records: (before?.records ?? 0) + records,
      family,
    })
  }
  return { bases: [...bases.values()], waiting }
}

const slug = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^[^a-z]+|_+$/g, "")
    .slice(0, 40)

/** A name that no table, view or other draft has. */
export const tableName = ({ product, sub_families }: Basis, taken: ReadonlySet<string>): string => {
  const first = slug(product) || "records"
  const isFree = (name: string) => !taken.has(name)
  const [only, ...more] = sub_families
  const longer = only !== undefined && more.length === 0 ? `${first}_${slug(only)}` : `${first}_records`
  for (const name of [first, longer]) if (isFree(name)) return name
  for (let n = 2; ; n++) if (isFree(`${first}_${n}`)) return `${first}_${n}`
}

const kindOf = ({ product, sub_families, sources }: Basis) => [sources, product, sub_families] as const

const observe = Effect.fnUntraced(function* (connection: Connection, basis: Basis) {
  const object = basis.family === undefined ? new SeenObject() : observerOf(basis.family)
  const keys = new KeyCandidates()
  const { chunks } = yield* connection.stream(recordsSql, kindOf(basis))
  yield* Stream.runForEach(chunks, (rows) =>
    Effect.sync(() => {
      for (const [group, customer, text] of rows) {
        const parsed = parseBody(new TextEncoder().encode(String(text)))
        if (parsed._tag === "UnreadableBody") continue
        const record = parsed.value as Readonly<Record<string, unknown>>
        object.add(record, String(customer))
        keys.add(String(group), record)
      }
    }),
  )
  return { object, keys }
}, Effect.scoped)

const draftOf = Effect.fnUntraced(function* (
  connection: Connection,
  basis: Basis,
  table: string,
  others: ReadonlyArray<string>,
  families: ReadonlyArray<RecordFamily>,
) {
  const { object, keys } = yield* observe(connection, basis)
  if (basis.family !== undefined) return { object, draft: reviseSchema(basis.family, object) }
  const asked = yield* decoded(Features, yield* connection.rows(featuresSql, kindOf(basis)))
  const features = feedersOf(basis.product, asked[0]?.held ?? 0, asked, others, families)
  const { product, sub_families } = basis
  const known = features.length > 0 ? features : [product]
  const draft = draftSchema({ table, product, sub_families, features: known }, object, keys)
  const unknown =
    "It is not known which features feed these records: the product's name stands in their place."
  return { object, draft: features.length > 0 ? draft : { ...draft, notes: [unknown, ...draft.notes] } }
})

/** The kinds of records that stand in no table of their own. */
export const looseKinds = Effect.fn("InferDrafts.kinds")(function* (connection: Connection) {
  return yield* decoded(Kinds, yield* connection.rows(kindsSql))
})

/** Each draft with its YAML, which the schemas' own parser has read. */
export const inferDrafts = Effect.fn("InferDrafts.draft")(function* (
  connection: Connection,
  bases: ReadonlyArray<Basis>,
  families: ReadonlyArray<RecordFamily>,
) {
  const taken = new Set([...publishedTables(families), ...publishedViews(families)].map(({ name }) => name))
  const drafts: Array<WrittenDraft> = []
  for (const basis of bases) {
    const table = basis.family?.table ?? tableName(basis, taken)
    const others = [...bases, ...families].map(({ product }) => product)
    const { object, draft } = yield* draftOf(
      connection,
      basis,
      table,
      others.filter((product) => product !== basis.product),
      families,
    )
    for (const name of [table, ...Object.values(draft.file.children ?? {}).map((child) => child.table ?? "")])
      taken.add(name)
    const all = counted(basis.records, "record")
    const about =
      object.count < basis.records
        ? `Drafted from the newest ${object.count} of ${all}.`
        : `Drafted from ${all}.`
    drafts.push({
      table,
      product: basis.product,
      sub_families: basis.sub_families,
      records: object.count,
      notes: draft.notes,
      schema: draft.file,
      yaml: yield* draftText(draft, `${table}.yaml. ${about} Check types, comments and features.`),
    })
  }
  return drafts
})

const named = (name: Option.Option<string>, value: string) => Option.isNone(name) || name.value === value

export const infer = command("infer", {
  examples: {
    "nightjar infer --product accounts > schemas/records/accounts.yaml":
      "A draft to complete, for a job with `schemas: ./schemas`",
  },
  flags: {
    product: optionalFlag("product", "PRODUCT", "Only records of this product"),
    subFamily: optionalFlag("sub-family", "SUB_FAMILY", "Only records of this sub_family"),
  },
  run: ({ product, subFamily }, output) =>
    Effect.gen(function* () {
      if ((yield* policyOf(output)) !== undefined) return yield* refuse("records-withheld")
      const families = yield* familiesOf(output)
      const found = yield* withPublished(
        output,
        Effect.fnUntraced(function* (connection) {
          const kinds = yield* looseKinds(connection)
          const chosen = kinds.filter(
            (each) => named(product, each.product) && named(subFamily, each.sub_family),
          )
          if (chosen.length === 0 && kinds.length > 0) {
            const isProduct = Option.isSome(product) && kinds.every((each) => each.product !== product.value)
            const wanted = isProduct ? product.value : Option.getOrElse(subFamily, () => "")
            const known = new Set(kinds.map((each) => (isProduct ? each.product : each.sub_family)))
            return yield* refuse("family-unknown", { suggestion: suggestion(wanted, [...known]) })
          }
          const { bases, waiting } = basesOf(chosen, families)
          return { drafts: yield* inferDrafts(connection, bases, families), waiting }
        }),
      )
      if (found === undefined) return yield* refuse("nothing-published", { output })
      const { drafts, waiting } = found
      if (waiting > 0) yield* warn("records-have-schema", { records: counted(waiting, "record") })
      if (drafts.length === 0) yield* note("There is nothing to draft: every record has a table of its own.")
      return drafts
    }),
  text: (drafts) =>
    Effect.gen(function* () {
      for (const [index, { yaml }] of drafts.entries())
        yield* say(`${index === 0 ? "" : "---\n"}${yaml.trimEnd()}`)
      if (drafts.length > 0)
        yield* note(
          `${counted(drafts.length, "draft")}. Put each in a file of its own in records/ of the job's ` +
            "`schemas` folder; --product and --sub-family choose one.",
        )
    }),
})
