/**
 * Listens to the probes that `ProbeHooks.ts` puts into the code: which functions were called about one customer
 * alone, and one of them that throws whenever it is.
 */

interface Listener {
  onCall: ((id: string, args: ArrayLike<unknown>) => void) | undefined
}

const listenerOf = (): Listener => {
  const listener: unknown = Reflect.get(globalThis, "__probes")
  if (typeof listener !== "object" || listener === null)
    throw new Error("no probes: start it with --import ./test/faults/ProbeHooks.ts")
  return listener as Listener
}

/** Values looked at per argument: what is larger is about everybody. */
const valuesMax = 4_000

type Who = "nobody" | "victim" | "somebody else" | "all"

/** About whom one argument is, as far as its texts and bytes say. */
const about = (root: unknown, victim: string, others: ReadonlyArray<string>): Who => {
  let isVictim = false
  let isOther = false
  const seen = new Set<unknown>()
  const pending: Array<unknown> = [root]
  for (let looked = 0; pending.length > 0 && looked < valuesMax; looked++) {
    const value = pending.pop()
    if (typeof value === "string" || value instanceof Uint8Array) {
      const text = typeof value === "string" ? value : Buffer.from(value).toString("latin1")
      if (text.includes(victim)) isVictim = true
      if (others.some((other) => text.includes(other))) isOther = true
    } else if (typeof value === "object" && value !== null && !seen.has(value)) {
      seen.add(value)
      if (value instanceof Map) pending.push(...value.keys(), ...value.values())
      else if (value instanceof Set) pending.push(...value)
      else for (const key of Object.keys(value)) pending.push(dataOf(value, key))
    }
    if (isVictim && isOther) return "all"
  }
  return isVictim ? "victim" : isOther ? "somebody else" : "nobody"
}

/** The value of a field; one that has to be computed is none. */
const dataOf = (value: object, key: string): unknown => Object.getOwnPropertyDescriptor(value, key)?.value

/** Whether a call is about the victim: one argument is about it alone, and none about somebody else alone. */
export const concerns = (
  args: ArrayLike<unknown>,
  victim: string,
  others: ReadonlyArray<string>,
): boolean => {
  const who = Array.from(args, (each) => about(each, victim, others))
  return who.includes("victim") && !who.includes("somebody else")
}

/** A function that throws, and from which moment of the night on. */
export interface ThrowPoint<Moment extends string> {
  readonly id: string
  readonly from: Moment
}

interface Watched<Moment extends string> {
  /** In the order in which a night reaches them. */
  readonly moments: ReadonlyArray<Moment>
  /** The last one that this night has reached; before the first one nothing throws. */
  readonly reached: () => Moment | undefined
  readonly isMeant: (args: ArrayLike<unknown>) => boolean
  /** Told of the first call that throws. */
  readonly onFirst: () => void
}

/** Watches until it is stopped; the function of `point` throws at every call that `isMeant`. */
export const throwIn = <Moment extends string>(
  point: ThrowPoint<Moment> | undefined,
  { moments, reached, isMeant, onFirst }: Watched<Moment>,
) => {
  const listener = listenerOf()
  const called = new Map<string, Set<Moment>>()
  const early = new Set<string>()
  let threw = false
  listener.onCall = (id, args) => {
    if (point !== undefined && id !== point.id) return
    const now = reached()
    const isKnown = now === undefined ? early.has(id) : called.get(id)?.has(now) === true
    if (point === undefined && isKnown) return
    if (!isMeant(args)) return
    if (now === undefined) return void early.add(id)
    called.set(id, (called.get(id) ?? new Set()).add(now))
    if (point === undefined || moments.indexOf(now) < moments.indexOf(point.from)) return
    if (!threw) onFirst()
    threw = true
    throw new TypeError(`thrown in ${id}`)
  }
  return {
    stop: () => {
      listener.onCall = undefined
      return { threw, called, early }
    },
  }
}
