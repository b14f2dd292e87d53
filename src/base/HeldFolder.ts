/**
 * A folder can be moved, or its disk unmounted, while a process works in it, and a person can remove its
 * lock. What is open goes with a moved folder; what is written by its path would begin another folder there.
 * Without the lock, another process may work in the folder by now: this one writes nothing more in it.
 */
import { statSync } from "node:fs"
import { resolve, sep } from "node:path"

interface Place {
  readonly path: string
  readonly dev: bigint
  readonly ino: bigint
}
const held = new Set<{ readonly root: Place; readonly lock: Place }>()

const placeOf = (path: string): Place => {
  const { dev, ino } = statSync(path, { bigint: true })
  return { path, dev, ino }
}

const isThere = ({ path, dev, ino }: Place): boolean => {
  const now = statSync(path, { bigint: true, throwIfNoEntry: false })
  return now?.dev === dev && now.ino === ino
}

/** From now until its answer is called, nothing is written in this folder without it and its lock. */
export const holdFolder = (folder: string, lock: string): (() => void) => {
  const one = { root: placeOf(resolve(folder)), lock: placeOf(resolve(lock)) }
  held.add(one)
  return () => void held.delete(one)
}

/** Throws if what is at this path is no longer this process's to write; `isOpen`: it was opened before. */
export const refuseStrange = (path: string, isOpen: boolean): void => {
  const asked = resolve(path)
  for (const { root, lock } of held) {
    if (asked !== root.path && !asked.startsWith(root.path + sep)) continue
    const isMoved = !isThere(root)
    if (isMoved && !isOpen)
      throw new Error(`${root.path} was moved or unmounted while this process works in it`)
    if (!isMoved && !isThere(lock))
      throw new Error(
        `${lock.path} was removed while this process works: another one may work in the folder now`,
      )
  }
}
