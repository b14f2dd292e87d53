/** Tickets and tokens. */
import { ofTheService } from "../server/Caller.ts"
import { tokenStartSuite } from "./TokenStartSuite.ts"
import { midnight, tokenSuite } from "./TokenSuite.ts"

ofTheService("tickets and tokens", tokenSuite, midnight)
ofTheService("starts with a token", tokenStartSuite, midnight)
