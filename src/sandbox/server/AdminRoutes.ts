/**
 * The embedded service's truth for people who test against it: `GET /admin` as a page, `GET /admin/truth`
 * as JSON. No secret is required (the server binds this machine only, unless told otherwise) and none is
 * shown; neither the reference nor the contract has such routes.
 */
import { Clock, Effect, Layer, Result, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { adminPage } from "../admin/AdminPage.ts"
import type { AdminFilter } from "../admin/AdminView.ts"
import { Sandbox } from "./Sandbox.ts"

const limitMax = 1_000
const limitDefault = 100

const Asked = Schema.Struct({
  limit: Schema.optionalKey(
    Schema.NumberFromString.check(
      Schema.makeFilter((limit: number) => Number.isInteger(limit) && limit >= 1 && limit <= limitMax, {
        expected: `a whole number from 1 to ${limitMax}`,
      }),
    ),
  ),
  customer: Schema.optionalKey(Schema.String),
  application: Schema.optionalKey(Schema.String),
})
const decodeAsked = Schema.decodeUnknownResult(Asked)

const filterOf = ({ limit = limitDefault, customer, application }: typeof Asked.Type): AdminFilter => ({
  limit,
  ...(customer === undefined || customer === "" ? {} : { customer }),
  ...(application === undefined || application === "" ? {} : { application }),
})

const refused = HttpServerResponse.jsonUnsafe(
  { detail: `limit: a whole number from 1 to ${limitMax}; customer, application: one text each` },
  { status: 422 },
)

/** A page shows what callers sent: it may load nothing and run nothing. */
const headers = {
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
}

type View = Parameters<typeof adminPage>[0]

const answering = (show: (view: View) => HttpServerResponse.HttpServerResponse) =>
  Effect.fnUntraced(function* (sandbox: Sandbox["Service"]) {
    const asked = decodeAsked(yield* HttpServerRequest.ParsedSearchParams)
    if (Result.isFailure(asked)) return refused
    const now = yield* Clock.currentTimeMillis
    return show(sandbox.admin(now, filterOf(asked.success)))
  })

const truth = answering((view) => HttpServerResponse.jsonUnsafe(view, { headers }))
const page = answering((view) =>
  HttpServerResponse.text(adminPage(view), { headers, contentType: "text/html; charset=utf-8" }),
)

export const AdminRoutes = {
  layer: Layer.unwrap(
    Effect.map(Sandbox, (sandbox) =>
      Layer.mergeAll(
        HttpRouter.add("GET", "/admin/truth", truth(sandbox)),
        HttpRouter.add("GET", "/admin", page(sandbox)),
      ),
    ),
  ),
}
