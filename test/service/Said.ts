/**
 * A reason as the ledger reads it: one of the table, or any word of the service.
 */
import { Schema } from "effect"
import { SettledReason } from "../../src/service/Ends.ts"

export const said = Schema.decodeSync(SettledReason)
