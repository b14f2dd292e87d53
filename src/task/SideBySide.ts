/**
 * Which of the jobs that are given together run side by side, and which wait for an earlier one: pure, and
 * decided before any of them starts. What two jobs share they do one after the other: a customer at a
 * source, a session, the runs of a job that one of them replaces. So no two runs that go on together can
 * ever start the same customer on the same engine (section 4.1). Their logins are kept apart by the ledger,
 * as those of one run are (`HeldLogin.ts`).
 */
import { customerKey, type Access } from "../service/Ids.ts"

/** Everything that a job may start, read or still have open. */
export interface Touches {
  readonly job: string
  /** Jobs that it follows. */
  readonly after: ReadonlyArray<string>
  /** Jobs whose earlier runs it collects: itself, and those that it replaces. */
  readonly collects: ReadonlyArray<string>
  /** Jobs that do not keep the same time are not side by side: an embedded service has a clock of its own. */
  readonly time: string
  readonly accesses: ReadonlyArray<Access>
  readonly sessions: ReadonlyArray<string>
  /** An earlier run left something that may still run at the service. */
  readonly isUnderWay: boolean
}

export type WaitReason =
  | { readonly why: "after" }
  | { readonly why: "time" }
  | { readonly why: "replaces"; readonly replaced: string }
  | { readonly why: "customer"; readonly shared: number; readonly example: Access }
  | { readonly why: "session"; readonly shared: number; readonly example: string }

export type Wait = WaitReason & { readonly job: string }

export interface Turn {
  readonly job: string
  /** The jobs that are over before this one starts. */
  readonly waits: ReadonlyArray<Wait>
}

interface Known {
  readonly touches: Touches
  readonly accesses: ReadonlyMap<string, Access>
  readonly sessions: ReadonlySet<string>
}

const knownOf = (touches: Touches): Known => ({
  touches,
  accesses: new Map(touches.accesses.map((access) => [customerKey(access), access])),
  sessions: new Set(touches.sessions),
})

/** Why the later of two jobs waits for the earlier one; undefined if nothing is in the way. */
const reasonOf = (earlier: Known, later: Known): WaitReason | undefined => {
  if (later.touches.after.includes(earlier.touches.job)) return { why: "after" }
  if (earlier.touches.time !== later.touches.time) return { why: "time" }
  const replaced = later.touches.collects.find((name) => earlier.touches.collects.includes(name))
  if (replaced !== undefined) return { why: "replaces", replaced }
  const accesses = [...later.accesses].filter(([key]) => earlier.accesses.has(key))
  const [first] = accesses
  if (first !== undefined) return { why: "customer", shared: accesses.length, example: first[1] }
  const sessions = [...later.sessions].filter((id) => earlier.sessions.has(id))
  const [session] = sessions
  return session === undefined ? undefined : { why: "session", shared: sessions.length, example: session }
}

/** `jobs` in the order in which they take their turns; each waits only for earlier ones. */
export const takeTurns = (jobs: ReadonlyArray<Touches>): ReadonlyArray<Turn> => {
  const known = jobs.map(knownOf)
  return known.map((later, index) => ({
    job: later.touches.job,
    waits: known.slice(0, index).flatMap((earlier): ReadonlyArray<Wait> => {
      const reason = reasonOf(earlier, later)
      return reason === undefined ? [] : [{ ...reason, job: earlier.touches.job }]
    }),
  }))
}
