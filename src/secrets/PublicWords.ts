/**
 * Words that are no secrets although somebody may log in with them: what the reference lists and how it names
 * its fields. They stand all over landing, ledger and tables, and decisions rest on them.
 */
import { Schema, SchemaAST } from "effect"
import { EngineDetails } from "../contract/Engine.ts"
import { Acceptance, actionRequiredFields, ExecutionState } from "../contract/Execution.ts"
import { flowResultsFields } from "../contract/FlowResults.ts"
import { exchangedFields } from "../contract/Token.ts"
import * as Vocabulary from "../contract/Vocabulary.ts"

/** Every field of a schema, however deep. */
const fieldsIn = (ast: SchemaAST.AST): ReadonlyArray<string> => {
  if (SchemaAST.isUnion(ast)) return ast.types.flatMap(fieldsIn)
  if (SchemaAST.isArrays(ast)) return ast.rest.flatMap(fieldsIn)
  if (!SchemaAST.isObjects(ast)) return []
  return [
    ...ast.propertySignatures.flatMap(({ name, type }) => [String(name), ...fieldsIn(type)]),
    ...ast.indexSignatures.flatMap(({ type }) => fieldsIn(type)),
  ]
}

const answers = [
  EngineDetails,
  Acceptance,
  ExecutionState,
  Schema.Struct(actionRequiredFields),
  Schema.Struct(flowResultsFields),
  Schema.Struct(exchangedFields),
]

export const publicWords: ReadonlySet<string> = new Set([
  ...Object.values(Vocabulary).flatMap((list) => (Array.isArray(list) ? list : [])),
  ...answers.flatMap(({ ast }) => fieldsIn(ast)),
  "detail",
])
