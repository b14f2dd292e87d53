/**
 * Stored tokens on their way from the store to a start: what a plan sees of them, which one a task logs in
 * with when its turn comes, and what is reported about those that expire. A key leaves the store only for
 * the request that needs it.
 */
import { Clock, Effect } from "effect"
import type { Access, RunId } from "../service/Ids.ts"
import type { StartLogin } from "../client/Service.ts"
import type { Fact } from "../ledger/Fact.ts"
import type { RunState } from "../ledger/RunState.ts"
import { TokenStore } from "./TokenStore.ts"
import { tokenKeys } from "./StoredToken.ts"
import type { EndingToken, StoredToken } from "./StoredToken.ts"
import type { TokenStoreState } from "./TokenStore.ts"
import { closedShelf, keptToken, makeShelf, narrowFeatures } from "./TokenLogin.ts"
import type { LoginOfTask, TokenShelf } from "./TokenLogin.ts"

interface TokensOfPlan {
  readonly run_id: RunId
  readonly expired: ReadonlyArray<EndingToken>
  readonly expiring: ReadonlyArray<EndingToken>
}

/** The current content of the token store: all of it, or what one task may use. */
export const readShelf = Effect.fnUntraced(function* (store: TokenStoreState, task?: Access) {
  if (store._tag === "Closed") return closedShelf
  const now = yield* Clock.currentTimeMillis
  const tokens = task === undefined ? yield* store.tokens : yield* store.tokensOf(task)
  return makeShelf(tokens, store.service, now)
})

/**
 * What a run says about expiring tokens: those that log in here and expire soon, for new tasks; expired
 * ones leave the store.
 */
export const endTokens = Effect.fnUntraced(function* (
  { plan }: { readonly plan: TokensOfPlan },
  known: RunState | undefined,
) {
  const store = yield* TokenStore
  const factOf = ({ task_id, token }: EndingToken) => ({ run_id: plan.run_id, task_id, ...tokenKeys(token) })
  if (store._tag === "Open" && plan.expired.length > 0)
    yield* store.dropExpired(plan.expired.map(({ token }) => token))
  const ending = plan.expiring.filter(({ task_id }) => known?.tasks.has(task_id) !== true)
  return [
    ...plan.expired.map((one): Fact => ({ _tag: "TokenDropped", ...factOf(one), reason: "EXPIRED" })),
    ...ending.map((one): Fact => ({
      _tag: "TokenExpiring",
      ...factOf(one),
      expires_at: one.token.expires_at,
    })),
  ]
})

/** Another attempt in the same run uses the token that an earlier one obtained. */
export const withNewToken = <Task extends LoginOfTask>(task: Task, tokens: TokenShelf): Task => {
  const { login } = task.start
  if (login._tag === "Token" || !login.tokenized_access) return task
  const token = keptToken(tokens, task, task.fingerprint)
  if (token === undefined) return task
  const { features } = narrowFeatures(task.features, token)
  const { parameters } = login
  return { ...task, features, start: { ...task.start, login: { _tag: "Token", token, parameters } } }
}

/** Undefined if the token is gone, or cannot be decrypted. */
export const loginOf = Effect.fnUntraced(function* (
  { start: { login } }: Pick<LoginOfTask, "start">,
  store: TokenStoreState,
) {
  if (login._tag === "Parameters") return { _tag: "Parameters", parameters: login.parameters } as const
  const token_key = store._tag === "Open" ? yield* store.tokenKey(login.token) : undefined
  if (token_key === undefined) return undefined
  return { _tag: "Token", token_id: login.token.token_id, token_key } as const
})

/** The parameters that the job has besides the token: for a service that refuses such a start. */
export const parametersBehind = ({ start: { login } }: Pick<LoginOfTask, "start">): StartLogin | undefined =>
  login._tag === "Token" && login.parameters !== undefined
    ? { _tag: "Parameters", parameters: login.parameters }
    : undefined

export const tokenOf = ({ start: { login } }: Pick<LoginOfTask, "start">): { readonly token?: StoredToken } =>
  login._tag === "Token" ? { token: login.token } : {}
