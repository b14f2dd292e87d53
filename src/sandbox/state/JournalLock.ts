/**
 * One process per journal: the lock is taken before any of it is read, and kept until the embedded service
 * ends.
 */
import { Effect, Layer } from "effect"
import { lockFolder } from "../../base/FolderLock.ts"
import { JournalFailed, JournalInUse } from "./Journal.ts"

export const lockJournal = (path: string) =>
  Layer.effectDiscard(
    Effect.mapError(lockFolder(`${path}.lock`), (failure) =>
      failure._tag === "FolderLocked"
        ? new JournalInUse({ path })
        : new JournalFailed({ path, message: `${path}.lock: it cannot be made or written` }),
    ),
  )
