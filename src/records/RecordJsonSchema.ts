/**
 * The JSON Schema of record schemas, for editors (`schemas/record.schema.json`), derived from the schema that
 * loading uses.
 */
import { jsonSchemaOf } from "../base/JsonSchemaOf.ts"
import { RecordSchemaFile } from "./RecordSchema.ts"

export const recordJsonSchema = () => jsonSchemaOf(RecordSchemaFile)
