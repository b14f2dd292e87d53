/**
 * What publishing does with files besides writing them: reading, listing what is below a folder, and
 * reporting what the machine refused.
 */
import { existsSync, readdirSync } from "node:fs"
import { Effect } from "effect"
import { PublishFailed } from "./Publisher.ts"

/** Files below a folder, relative to it; none if there is no folder. */
export const filesBelow = (folder: string): ReadonlyArray<string> =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => !entry.isDirectory())
        .map((entry) => `${entry.parentPath}/${entry.name}`.slice(folder.length + 1))
        .toSorted()
    : []

/** One step with files; a refusal by the machine is reported without a stack trace. */
export const fileStep = <A>(step: () => A): Effect.Effect<A, PublishFailed> =>
  Effect.try({
    try: step,
    catch: (cause) => new PublishFailed({ message: cause instanceof Error ? cause.message : String(cause) }),
  })
