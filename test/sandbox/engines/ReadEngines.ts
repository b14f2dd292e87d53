/**
 * The catalogue's two calls as tests make them, and how they look at what comes back.
 * Nothing of our own client is in between.
 */
import { Effect } from "effect"
import { Caller, field, itemsOf } from "../server/Caller.ts"

export const list = (query = "", secret = "sandbox-app-1") =>
  Effect.gen(function* () {
    const caller = yield* Caller
    return yield* caller.call("GET", `${caller.base_url}/config/engines/list${query}`, { secret })
  })
export const details = (reference: string, secret = "sandbox-app-1") =>
  Effect.gen(function* () {
    const caller = yield* Caller
    return yield* caller.call("GET", `${caller.base_url}/config/engines/${encodeURIComponent(reference)}`, {
      secret,
    })
  })

export const references = (answer: unknown) => itemsOf(answer).map((engine) => field(engine, "reference"))
export const isText = (value: unknown) => typeof value === "string" && value !== ""
export const isTexts = (value: unknown) => Array.isArray(value) && value.every(isText)
export const isAmong = (words: ReadonlyArray<string>) => (value: unknown) => words.includes(String(value))

/** Engines that are there and cannot be run by anybody, with what the service says of each. */
export const reserved = [
  ["sandbox-draft:website", "engine not published (draft)"],
  ["sandbox-implementing:api", "engine not published (implementing)"],
  ["sandbox-partial:mobile", "engine not published (partial)"],
  ["sandbox-maintenance:website", "engine in maintenance"],
  ["sandbox-production:website", "engine of the production environment"],
  ["sandbox-offline:other", "the source is not answering"],
] as const
