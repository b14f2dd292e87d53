/**
 * A check of a folder in which a run may go on and publish meanwhile. What it finds is compared with what was
 * published before it began and after it: a finding counts if nothing was published in between, or if every
 * look has it. So a version that takes the place of another is no finding, and damage is still one.
 */
import { existsSync, readFileSync } from "node:fs"
import { Effect } from "effect"
import { isFolderLocked } from "../base/FolderLock.ts"
import type { Problem } from "../messages/Catalogue.ts"
import { fileStep } from "./Manifest.ts"
import type { Layout } from "./Manifest.ts"
import { temporary } from "./Store.ts"

/** Publications follow each other after at least four times as long as one takes. */
const looksMax = 5

const publishedIn = ({ manifest, next }: Layout) =>
  fileStep(() => ({
    isPublishing: existsSync(next),
    manifest: existsSync(manifest) ? readFileSync(manifest, "utf8") : "",
  }))

/** What somebody who works in the folder is about to finish. */
const isUnderWay = ({ id, where }: Problem): boolean =>
  id === "publication-interrupted" || (id === "file-unlisted" && where.endsWith(temporary("")))

const isSame = (one: Problem) => (other: Problem) =>
  one.id === other.id && one.where === other.where && one.problem === other.problem

/** `look` opens the folder anew each time: a new version may have further tables. */
export const verifyBeside = Effect.fn("Publishing.verifyBeside")(function* <E, R>(
  layout: Layout,
  look: Effect.Effect<ReadonlyArray<Problem>, E, R>,
) {
  let lasting: ReadonlyArray<Problem> | undefined
  for (let looks = 1; ; looks++) {
    const before = yield* publishedIn(layout)
    const found = yield* look
    if (found.length === 0) return found
    const isBusy = isFolderLocked(`${layout.root}/run.lock`)
    const told = isBusy ? found.filter((one) => !isUnderWay(one)) : found
    lasting = lasting === undefined ? told : lasting.filter((one) => told.some(isSame(one)))
    const after = yield* publishedIn(layout)
    const isStill =
      before.manifest === after.manifest && !(isBusy && (before.isPublishing || after.isPublishing))
    if (lasting.length === 0 || isStill || looks === looksMax) return lasting
    yield* Effect.sleep("1 second")
  }
})
