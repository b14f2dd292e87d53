/**
 * Nothing is removed from an output folder while it is copied: whoever copies and whoever removes holds the
 * same lock. A run that only adds does not need it.
 */
import { Effect } from "effect"

/** Until the scope ends, nothing is pruned in this folder. */
export const keepUnpruned = Effect.fnUntraced(function* (output: string) {
  const { lockFolder } = yield* Effect.promise(() => import("../base/FolderLock.ts"))
  return yield* lockFolder(`${output}/prune.lock`)
})
