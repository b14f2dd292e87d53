/**
 * A reason as the ledger reads it: one of the table, or any word of the service.
 */
import { Schema } from "effect"
import { SettledReason } from "../../src/ends/Ends.ts"

export const said = Schema.decodeSync(SettledReason)
