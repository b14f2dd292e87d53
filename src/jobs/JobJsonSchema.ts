/**
 * The JSON Schema of job files, for editors (`schemas/job.schema.json`), derived from the schema that loading
 * uses.
 */
import { jsonSchemaOf } from "../base/Schemas.ts"
import { JobFile } from "./JobFile.ts"

export const jobJsonSchema = () => jsonSchemaOf(JobFile)
