/**
 * Removes a customer from the output folder. The ledger comes first, in one transaction with the receipt:
 * from then on nothing refers to the rest, so that every later step may be cut off and repeated, and runs and
 * readers find a whole folder in between. What is needed to find the rest is in a file that goes last.
 */
import { join } from "node:path"
import { Effect } from "effect"
import type { RunId } from "../service/Ids.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { removeCopies } from "../ledger/LedgerCopy.ts"
import { blankFrames } from "../landing/BlankFrames.ts"
import { recover } from "../tables/Commit.ts"
import { forgetRows, unreadableFiles } from "../tables/ForgetRows.ts"
import type { Store } from "../tables/Store.ts"
import { forgetTokensOf } from "../tokens/ForgetTokens.ts"
import { ForgetFailed, step } from "./ForgetFailed.ts"
import {
  forgetDocuments,
  forgetInJournal,
  forgetInRuns,
  forgetRecordings,
  removeAll,
  runsIn,
} from "./ForgetFiles.ts"
import { forgottenOf, isBodyOf, keepPlan } from "./ForgetPlan.ts"
import type { ForgetPlan } from "./ForgetPlan.ts"
import type { Named } from "./Mentions.ts"
import { forgetNamed } from "./NamedDocuments.ts"

/** Before anything is removed: in a damaged folder nobody can say what is whose. */
export const checkWhole = Effect.fn("Keeping.checkWhole")(function* (store: Store) {
  const ledger = yield* Ledger
  const [damage] = yield* ledger.problems
  if (damage !== undefined) return yield* new ForgetFailed({ message: `ledger.sqlite: ${damage}` })
  // A publication, or a removal, that was cut off while it moved files: its files are not missing.
  yield* recover(store)
  const [path] = yield* unreadableFiles(store)
  if (path !== undefined) return yield* new ForgetFailed({ message: `${path} is missing or damaged` })
})

const namedIn = ({ customer_id, tasks, executions, sessions }: ForgetPlan): Named => ({
  customer_id,
  tasks: new Set(tasks.map(({ task_id }) => task_id)),
  ids: [...executions, ...sessions],
})

/**
 * The caller holds the folder, and nothing copies it. `writeReport` writes the report of a run again, and
 * returns whether it did. Returns the version of the tables.
 */
export const forget = Effect.fn("Keeping.forget")(function* <E, R>(
  store: Store,
  plan: ForgetPlan,
  toolVersion: string,
  writeReport: (run_id: RunId) => Effect.Effect<boolean, E, R>,
) {
  const ledger = yield* Ledger
  const { root } = store.layout
  const { receipt, counts, customer_id } = plan
  const forgotten = forgottenOf(plan)
  yield* keepPlan(store, plan)
  yield* ledger.forget(forgotten, { receipt, ...counts })
  yield* step(() => removeCopies(store.files, root))
  const landing = join(root, "landing")
  for (const run_id of runsIn(landing))
    yield* step(() => blankFrames(store.files, landing, run_id, isBodyOf(forgotten)))
  yield* forgetDocuments(store, plan.documents)
  yield* step(() => forgetNamed(store, customer_id))
  const version = yield* forgetRows(store, toolVersion, forgotten)
  yield* forgetTokensOf(join(root, "tokens.sqlite"), customer_id)
  for (const { run_id, paths } of yield* forgetInRuns(store, namedIn(plan)))
    if (!(yield* writeReport(run_id))) yield* step(() => removeAll(store.files, paths))
  yield* forgetRecordings(store, customer_id)
  yield* forgetInJournal(store, namedIn(plan))
  const isFinished = (yield* ledger.receipts).some(
    ({ fact }) => fact._tag === "ForgetFinished" && fact.receipt === receipt,
  )
  if (!isFinished) yield* ledger.append([{ _tag: "ForgetFinished", receipt }])
  yield* step(() => {
    store.files.remove(store.layout.forgetting)
    store.files.syncFolder(root)
  })
  return { version }
})
