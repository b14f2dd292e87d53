/**
 * Words that are no secrets although somebody may log in with them: what the reference lists and how it names
 * its fields. They stand all over landing, ledger and tables, and decisions rest on them.
 */
import { Schema, SchemaAST } from "effect"
import { Engine, EngineDetails } from "../contract/Engine.ts"
import { Acceptance, actionRequiredFields, ExecutionState } from "../contract/Execution.ts"
import { flowResultsFields } from "../contract/FlowResults.ts"
import { exchangedFields } from "../contract/Token.ts"
import * as Vocabulary from "../contract/Vocabulary.ts"

const textsIn = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    Array.isArray(value) ? textsIn(inner) : [key, ...textsIn(inner)],
  )
}

/** Every field of a schema, however deep. */
const fieldsIn = (ast: SchemaAST.AST): ReadonlyArray<string> => {
  if (SchemaAST.isUnion(ast)) return ast.types.flatMap(fieldsIn)
  if (SchemaAST.isArrays(ast)) return [...ast.elements, ...ast.rest].flatMap(fieldsIn)
  if (!SchemaAST.isObjects(ast)) return []
  return [
    ...ast.propertySignatures.flatMap(({ name, type }) => [String(name), ...fieldsIn(type)]),
    ...ast.indexSignatures.flatMap(({ type }) => fieldsIn(type)),
  ]
}

const answers = [
  Engine,
  EngineDetails,
  Acceptance,
  ExecutionState,
  Schema.Struct(actionRequiredFields),
  Schema.Struct(flowResultsFields),
  Schema.Struct(exchangedFields),
]

export const publicWords: ReadonlySet<string> = new Set([
  ...Object.values(Vocabulary).flatMap((list) =>
    typeof list === "object" && !Array.isArray(list) ? textsIn(list) : list,
  ),
  ...answers.flatMap(({ ast }) => fieldsIn(ast)),
  "detail",
  "status",
])
