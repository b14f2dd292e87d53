/**
 * Decides a start with a token (section 4.12; body and answers not shown). Own choice: the checks are those
 * of 4.1 once the token is known to be the application's and the request fits what it is locked to; a token
 * that opens nothing is accepted and closes at once, because its state has nothing to do with the form of
 * the request.
 */
import { Schema } from "effect"
import { LoginParameters } from "../../service/Execution.ts"
import type { StartRequest, ValidationItem } from "../../service/Execution.ts"
import type { TokenizedStartRequest } from "../../service/Token.ts"
import type { Look } from "../core/SandboxCore.ts"
import { decideStart, refusal } from "../executions/DecideStart.ts"
import type { StartDecision, StartInput } from "../executions/DecideStart.ts"
import { findToken, isTokenId, openToken } from "./DecideTokens.ts"
import { findEngine } from "../engines/EngineCatalogue.ts"
import type { SandboxEvent } from "../state/SandboxEvent.ts"
import type { StoredToken } from "../state/TokenState.ts"

interface TokenizedStartInput extends Look {
  readonly request: TokenizedStartRequest
}

export type TokenizedStartDecision =
  | StartDecision
  | { readonly _tag: "NotFound"; readonly events: ReadonlyArray<SandboxEvent> }
  | {
      readonly _tag: "Mismatched"
      readonly detail: ReadonlyArray<ValidationItem>
      readonly events: ReadonlyArray<SandboxEvent>
    }

export const malformedTokenId = (loc: ReadonlyArray<string>): ValidationItem => ({
  loc,
  msg: "not a token id",
  type: "value_error.token_id",
})

/** 2.6: locked to one engine, one customer and a fixed list, of which a run may ask for fewer. */
const mismatches = (
  { exchanged }: StoredToken,
  request: TokenizedStartRequest,
): ReadonlyArray<ValidationItem> => {
  const item = (loc: ReadonlyArray<string | number>, msg: string): ValidationItem => ({
    loc: ["body", ...loc],
    msg,
    type: "value_error.token_context",
  })
  const offered = findEngine(exchanged.engine_reference)?.features ?? []
  return [
    ...(request.engine_reference === exchanged.engine_reference
      ? []
      : [item(["engine_reference"], "not the engine of this token")]),
    ...(request.customer_id === exchanged.customer_id
      ? []
      : [item(["customer_id"], "not the customer of this token")]),
    ...(request.features ?? []).flatMap((feature, position) => {
      const code = typeof feature === "string" ? feature : feature.code
      // 4.1: what the engine does not implement is ignored, so it cannot widen the list.
      const widens = offered.some((known) => known === code) && !exchanged.features.includes(code)
      return widens ? [item(["features", position], "not among the features of this token")] : []
    }),
  ]
}

const decodeLogin = Schema.decodeUnknownSync(Schema.fromJsonString(LoginParameters))

/**
 * The start as it would have been with its parameters. A tokenized run gives no ticket (own choice): that
 * would extend a token, whose expiry does not depend on use.
 */
const asParametrised = (
  { token: _token, features, base_configurations, ...request }: TokenizedStartRequest,
  token: StoredToken,
  login: string | undefined,
): StartRequest => ({
  ...request,
  parameters: login === undefined ? {} : decodeLogin(login),
  features: features ?? token.exchanged.features,
  base_configurations: { ...base_configurations, tokenized_access: false },
})

export const decideTokenizedStart = (input: TokenizedStartInput): TokenizedStartDecision => {
  const { state, at, application, request } = input
  const { token: given, ...asked } = request
  const unopened: StartInput = { ...input, request: { ...asked, parameters: {} } }
  if (!application.mayTokenize) {
    return { _tag: "Refused", reason: "T10N_FORBIDDEN", events: [refusal(unopened, "t10n_forbidden")] }
  }
  if (!isTokenId(given.token_id)) {
    const detail = [malformedTokenId(["body", "token", "token_id"])]
    return { _tag: "Mismatched", detail, events: [refusal(unopened, "invalid")] }
  }
  const token = findToken(input, given.token_id)
  if (token === undefined) return { _tag: "NotFound", events: [refusal(unopened, "unknown_token")] }
  const { token_id, login_key, locking_hash } = token.exchanged
  const opened = openToken(state, token, given.token_key, at)
  const start: StartInput = {
    ...unopened,
    request: asParametrised(request, token, "login" in opened ? opened.login : undefined),
    token: { token_id, login_key, locking_hash, ...("fault" in opened ? { fault: opened.fault } : {}) },
  }
  const detail = mismatches(token, request)
  if (detail.length > 0) return { _tag: "Mismatched", detail, events: [refusal(start, "invalid")] }
  return decideStart(start)
}
