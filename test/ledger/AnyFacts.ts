/**
 * Facts of any kind in any order, from the schema: few ids, so that they meet. Most of it no night would write;
 * what is true of them all is true of every ledger.
 */
import { SchemaAST } from "effect"
import * as fc from "fast-check"
import { builtInSources } from "../../src/service/FlowResults.ts"
import { Fact } from "../../src/ledger/Fact.ts"
import { begun, run_id, task_id } from "../task/Lives.ts"

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
