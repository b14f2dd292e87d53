/**
 * Facts from the schema: one of each kind with every field and every word that it may have, and any of them in any
 * order, with few ids, so that they meet. Most of it no night would write; what is true of them all is true of every
 * ledger.
 */
import { SchemaAST } from "effect"
import * as fc from "fast-check"
import { builtInSources, flowResultsSource } from "../../src/service/FlowResults.ts"
import { Fact } from "../../src/ledger/Fact.ts"
import { anId } from "../harness/Id.ts"
import { begun, run_id, task_id } from "../task/Lives.ts"

/**
 * A value of a schema in which every text is `text`, also where words of ours may stand; of several words the one
 * that `choice` says. A list has one item, and numbers beside each other differ.
 */
const sampleOf = (ast: SchemaAST.AST, text: string, choice: number): unknown => {
  if (SchemaAST.isLiteral(ast)) return ast.literal
  if (SchemaAST.isUnion(ast)) {
    const type = ast.types.find(SchemaAST.isString) ?? ast.types[choice % ast.types.length]
    return sampleOf(type ?? ast, text, choice)
  }
  if (SchemaAST.isArrays(ast)) return ast.rest.slice(0, 1).map((item) => sampleOf(item, text, choice))
  if (SchemaAST.isString(ast)) return text
  if (SchemaAST.isNumber(ast)) return 7
  if (SchemaAST.isBoolean(ast)) return true
  if (!SchemaAST.isObjects(ast)) throw new Error(`no sample of ${ast._tag}`)
  return Object.fromEntries([
    ...ast.propertySignatures.map(({ name, type }) => {
      const field = String(name)
      return [field, SchemaAST.isNumber(type) ? field.length : sampleOf(type, text, choice)] as const
    }),
    ...ast.indexSignatures.map(({ type }) => [text, sampleOf(type, text, choice)] as const),
  ])
}
/** One fact of each kind. */
export const sampleFacts = (text: string, choice = 0): ReadonlyArray<Fact> =>
  Fact.members.map((member) => sampleOf(member.ast, text, choice) as Fact)
/** As many choices as any field has words. */
export const choices = Array.from({ length: 8 }, (_, choice) => choice)

const ownValues = { sources: [flowResultsSource], frames: [], until: "2026-11-21T03:00:00Z" }
/** Every kind with each word that a field of it may hold, all of one task; no other file has any of them. */
export const everyFact: ReadonlyArray<Fact> = Fact.members.flatMap(({ ast }) => [
  ...new Map(
    choices.map((choice) => {
      const fact = Object(sampleOf(ast, "x", choice))
      for (const [name, value] of Object.entries(ownValues)) if (name in fact) fact[name] = value
      return [JSON.stringify(fact), fact as Fact]
    }),
  ).values(),
])
export const everyRun = anId("x")

const pools: Readonly<Record<string, ReadonlyArray<string>>> = {
  run_id: [run_id],
  task_id: [task_id, `${run_id}/c-2/bank:website`],
}

const valueOf = (ast: SchemaAST.AST, name: string): fc.Arbitrary<unknown> => {
  if (name === "sources") return fc.subarray([...builtInSources])
  if (SchemaAST.isLiteral(ast)) return fc.constant(ast.literal)
  if (SchemaAST.isUnion(ast)) return fc.oneof(...ast.types.map((type) => valueOf(type, name)))
  if (SchemaAST.isArrays(ast))
    return fc.array(fc.oneof(...ast.rest.map((item) => valueOf(item, name))), { maxLength: 2 })
  if (SchemaAST.isString(ast)) return fc.constantFrom(...(pools[name] ?? [`${name}-1`, `${name}-2`]))
  if (SchemaAST.isNumber(ast)) return fc.integer({ min: 1, max: 2 })
  if (SchemaAST.isBoolean(ast)) return fc.boolean()
  if (SchemaAST.isNull(ast)) return fc.constant(null)
  if (!SchemaAST.isObjects(ast)) throw new Error(`no values of ${ast._tag}`)
  if (ast.indexSignatures.length > 0) return fc.constant({})
  const fields = ast.propertySignatures.map(({ name: key, type }) => [String(key), type] as const)
  const always = fields.filter(([, type]) => !SchemaAST.isOptional(type)).map(([key]) => key)
  return fc.record(Object.fromEntries(fields.map(([key, type]) => [key, valueOf(type, key)])), {
    requiredKeys: always,
    noNullPrototype: true,
  })
}

/** Only the archive says what stands in it. */
const written = Fact.members.filter(({ fields }) => fields._tag.schema.literal !== "FactsArchived")
const anyFact = fc.oneof(...written.map((member) => valueOf(member.ast, "") as fc.Arbitrary<Fact>))

/** One run that has begun, and whatever comes after it. */
export const anyFacts: fc.Arbitrary<ReadonlyArray<Fact>> = fc
  .array(anyFact, { maxLength: 40 })
  .map((facts) => [...begun, ...facts])
