/**
 * Where time is recorded: before every route of the contract, so that a call is answered only once the
 * journal holds a time that is later than the answer.
 */
import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { Sandbox } from "./Sandbox.ts"

/** Middleware for the contract's routes; absent if nothing outlives the process. */
export const TimeGate = {
  layer: Layer.unwrap(
    Effect.map(Sandbox, ({ keepTime }) =>
      keepTime === undefined
        ? Layer.empty
        : HttpRouter.middleware((route) => Effect.andThen(keepTime, route)).layer,
    ),
  ),
}
