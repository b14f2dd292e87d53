/**
 * Which of the jobs that are given together run side by side, and which wait for an earlier one: pure, and
 * decided before any of them starts. What two jobs share they do one after the other: a customer at a
 * source, a login, a session, the runs of a job that one of them replaces. So no two runs that go on
 * together can ever start the same customer on the same engine (section 4.1), and a login that is rejected
 * in one of them is not sent by another.
 */
import { customerKey, sourceOf, type Access } from "../service/Ids.ts"

/** What is known of a login before any form is seen: hashes of the values that are sent, by parameter. */
export interface TouchedLogin {
  readonly engine_reference: string
  readonly values: Readonly<Record<string, string>>
  /** Nothing else is sent; otherwise there are parameters whose values are not known yet. */
  readonly isWhole: boolean
}

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
  readonly logins: ReadonlyArray<TouchedLogin>
  /** An earlier run left something that may still run at the service. */
  readonly isUnderWay: boolean
}

export type WaitReason =
  | { readonly why: "after" }
  | { readonly why: "time" }
  | { readonly why: "replaces"; readonly replaced: string }
  | { readonly why: "customer"; readonly shared: number; readonly example: Access }
  | { readonly why: "session"; readonly shared: number; readonly example: string }
  | { readonly why: "login"; readonly engine_reference: string }

export type Wait = WaitReason & { readonly job: string }

export interface Turn {
  readonly job: string
  /** The jobs that are over before this one starts. */
  readonly waits: ReadonlyArray<Wait>
}

/** Logins with the same names of parameters. */
interface Shape {
  readonly names: ReadonlyArray<string>
  readonly isWhole: boolean
  readonly logins: ReadonlyArray<TouchedLogin>
}

/** By provider. */
type Shapes = ReadonlyMap<string, ReadonlyArray<Shape>>

const namesOf = ({ values }: TouchedLogin) => Object.keys(values).toSorted()

const shapesOf = (logins: ReadonlyArray<TouchedLogin>): Shapes => {
  const byProvider = Map.groupBy(logins, ({ engine_reference }) => sourceOf(engine_reference))
  return new Map(
    Array.from(byProvider, ([provider, own]) => {
      const alike = Map.groupBy(own, (login) => JSON.stringify([login.isWhole, namesOf(login)]))
      const shapes = [...alike.values()].flatMap((same) =>
        same.slice(0, 1).map((first) => ({ names: namesOf(first), isWhole: first.isWhole, logins: same })),
      )
      return [provider, shapes]
    }),
  )
}

const within = (some: ReadonlyArray<string>, all: ReadonlyArray<string>): boolean =>
  some.every((name) => all.includes(name))

const valuesAt = (names: ReadonlyArray<string>, { values }: TouchedLogin): string =>
  JSON.stringify(names.map((name) => values[name]))

/**
 * Whether a login of the one may be one of the other. Two that are known as a whole are the same account if
 * the one repeats all of the other; of what is not known yet, everything is possible.
 */
const mayBeSame = (one: Shape, other: Shape): boolean => {
  const common = one.names.filter((name) => other.names.includes(name))
  const areWhole = one.isWhole && other.isWhole
  if (areWhole && !within(one.names, other.names) && !within(other.names, one.names)) return false
  if (common.length === 0) return !areWhole || one.names.length === other.names.length
  const known = new Set(one.logins.map((login) => valuesAt(common, login)))
  return other.logins.some((login) => known.has(valuesAt(common, login)))
}

/** An engine on which both may send the same login; undefined if there is none. */
const sharedLogin = (one: Shapes, other: Shapes): string | undefined => {
  for (const [provider, shapes] of one)
    for (const mine of shapes)
      for (const theirs of other.get(provider) ?? [])
        if (mayBeSame(mine, theirs)) return theirs.logins[0]?.engine_reference
  return undefined
}

interface Known {
  readonly touches: Touches
  readonly accesses: ReadonlyMap<string, Access>
  readonly sessions: ReadonlySet<string>
  readonly shapes: Shapes
}

const knownOf = (touches: Touches): Known => ({
  touches,
  accesses: new Map(touches.accesses.map((access) => [customerKey(access), access])),
  sessions: new Set(touches.sessions),
  shapes: shapesOf(touches.logins),
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
  if (session !== undefined) return { why: "session", shared: sessions.length, example: session }
  const engine_reference = sharedLogin(earlier.shapes, later.shapes)
  return engine_reference === undefined ? undefined : { why: "login", engine_reference }
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
