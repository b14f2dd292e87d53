/**
 * `nightjar repair`: repairs the output folder as far as possible from what is landed and published, and
 * names what only a backup can restore. It makes no call to the service and deletes nothing there.
 */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { withId } from "../../messages/Catalogue.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import { jsonFlag, outputFolder } from "../CommonFlags.ts"
import { endWith } from "../Failures.ts"
import { requireLedger } from "../LedgerOf.ts"
import { inHeldStore } from "../HeldStore.ts"
import { openedStoreWithKey, problemsOf } from "../LookAtFolder.ts"
import { say, sayJson } from "../Output.ts"
import { toolVersion } from "../Version.ts"

const repairs = Effect.fnUntraced(function* (output: string) {
  const { repair: repairStore } = yield* Effect.promise(() => import("../../publishing/Repair.ts"))
  return yield* inHeldStore(output, (store) => repairStore(store, toolVersion), openedStoreWithKey)
})

export const repair = Command.make(
  "repair",
  { json: jsonFlag },
  Effect.fn("Repair.handle")(function* ({ json }) {
    const output = yield* outputFolder
    yield* requireLedger(output)
    const { done, left } = yield* repairs(output)
    const problems = yield* problemsOf(output)
    if (json) yield* sayJson({ done, left, problems })
    else {
      for (const what of done) yield* say(what)
      for (const what of left) yield* say(what)
      for (const { id, where, problem, next } of problems)
        yield* say(`${where}: ${withId(id, problem)}. ${next}`)
      if (done.length === 0 && problems.length === 0) yield* say("There is nothing to repair.")
    }
    yield* endWith(left.length + problems.length === 0 ? exitCodes.ok : exitCodes.peopleMustAct)
  }),
).pipe(Command.withDescription("Rebuilds missing or damaged tables from landed data"))
