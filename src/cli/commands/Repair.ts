/**
 * `nightjar repair`: repairs the output folder as far as possible from what is landed and published, and
 * names what only a backup can restore. It makes no call to the service and deletes nothing there.
 */
import { join } from "node:path"
import { Effect } from "effect"
import { Command } from "effect/cli"
import { withId } from "../../messages/Catalogue.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import type { Job } from "../../jobs/Job.ts"
import { jsonFlag, outputFolder } from "../CommonFlags.ts"
import { endWith, toolVersion } from "../Failures.ts"
import { checkJobs } from "../Jobs.ts"
import { knownJobPaths, openedStoreWithKey, problemsOf, requireLedger } from "../LookAtFolder.ts"
import { inHeldStore, markerName, markerState } from "../RunFolder.ts"
import { say, sayJson } from "../Output.ts"
import { Wiring } from "../Wiring.ts"

/** The record schemas of the jobs that ran here, as far as their files can still be read. */
const schemasOfJobs = Effect.gen(function* () {
  const { readOwnSchemas } = yield* Effect.promise(() => import("../../records/SchemasInForce.ts"))
  const checked = yield* checkJobs(yield* knownJobPaths)
  const folders = checked.flatMap(({ job }) => (job?.schemas === undefined ? [] : [job.schemas]))
  return (yield* Effect.forEach(folders, (folder) => readOwnSchemas(join(folder, "records")))).flat()
})

const repairsSchemas = Effect.fnUntraced(function* (root: string, share: Job["share"]) {
  const { recordSchemas } = yield* Wiring
  const { repairSchemas } = yield* Effect.promise(() => import("../../tables/KeepSchemas.ts"))
  const { readShipped } = yield* Effect.promise(() => import("../../records/SchemasInForce.ts"))
  return yield* repairSchemas({ root, share }, [readShipped(recordSchemas), schemasOfJobs])
})

const repairs = Effect.fnUntraced(function* (output: string) {
  const { repair: repairStore } = yield* Effect.promise(() => import("../../tables/Repair.ts"))
  const written: Array<string> = []
  const opens = Effect.fnUntraced(function* (root: string, share: Job["share"]) {
    written.push(...(yield* repairsSchemas(root, share)))
    return yield* openedStoreWithKey(root, share)
  })
  const { done, left } = yield* inHeldStore(output, (store) => repairStore(store, toolVersion), opens)
  const schemas = written.map((name) => `schemas/${name}: written again with the same text`)
  return { done: [...schemas, ...done], left }
})

export const repair = Command.make(
  "repair",
  { json: jsonFlag },
  Effect.fn("Repair.handle")(function* ({ json }) {
    const output = yield* outputFolder
    yield* requireLedger(output)
    const wasChanged = markerState(output) === "damaged"
    const repaired = yield* repairs(output)
    // Whoever holds the folder to write in it marks it.
    const done = [...(wasChanged ? [`${markerName}: written again`] : []), ...repaired.done]
    const { left } = repaired
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
