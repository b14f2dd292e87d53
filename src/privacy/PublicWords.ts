/**
 * Words that are not secrets although somebody may log in with them: the values and field names of the
 * reference. They are all over landing, ledger and tables, and decisions depend on them.
 */
import { Schema, SchemaAST } from "effect"
import { EngineDetails } from "../service/Engine.ts"
import { Acceptance, actionRequiredFields, ExecutionState } from "../service/Execution.ts"
import { flowResultsFields } from "../service/FlowResults.ts"
import { exchangedFields } from "../service/Token.ts"
import * as Vocabulary from "../service/Vocabulary.ts"

/** Every field name of a schema, at any depth. */
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
