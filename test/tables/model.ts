/**
 * The model that tests compare the tables with: what is current after each run, and since when, told from what the
 * runs asked for and what their bodies had. It is a fold over runs in the order in which they began, knows no table
 * and no SQL, and is compared with `stepRun` alone and with whole output folders.
 */
import { assert } from "@effect/vitest"

/** A record as a body has it. */
export interface Said {
  readonly kind: string
  /** Its business key; undefined if its table has none. */
  readonly key: string | undefined
  /** Everything of it that counts, as text: equal texts are equal rows. */
  readonly content: string
  /** What does not count, and is as the last run that read it had it. */
  readonly beside: string
  /** Of a session that is not the newest of its task. */
  readonly isEarlier: boolean
}

export interface ToldTask {
  /** Customer and engine; or a session that was only read, which nobody has to ask for. */
  readonly subject: string
  readonly isAlone: boolean
  /** The one that was read last. */
  readonly session: string
  /** What is asked for; everything of the engine if it is empty. */
  readonly features: ReadonlyArray<string>
  /** Features of which the run tells an outcome, and those among them that succeeded. */
  readonly told: ReadonlyArray<string>
  readonly succeeded: ReadonlyArray<string>
  readonly rows: ReadonlyArray<Said>
  /** Of a run that goes on: it is planned, and nothing of it is in the tables yet. */
  readonly isOpen?: boolean
}

export interface ToldRun {
  readonly run_id: string
  readonly job: string
  /** Its night. */
  readonly date: string
  /**
   * A whole run decides what its job asks for; a part of the job only adds to that; a rerun asks for what its night has
   * not answered, as its job has it by then; one that the service kept from beginning has no tasks.
   */
  readonly kind: "whole" | "part" | "rerun" | "empty"
  /** The run that began the night of a rerun. */
  readonly parent?: string | undefined
  /** It goes on: what it asks for is asked for too, and nothing ends because of it. */
  readonly isInterim?: boolean
  readonly replaces: ReadonlyArray<string>
  readonly tasks: ReadonlyArray<ToldTask>
}

export interface Current extends Said {
  readonly scope: string
  /** The date that confirmed it. */
  readonly as_of: string
}

export type EndedBy = "changed" | "gone" | "not requested"

export interface Moment<R extends ToldRun> {
  readonly run: R
  /** The date of everything that begins or ends with the run. */
  readonly e: string
  readonly current: ReadonlyArray<Current>
  readonly begun: ReadonlyArray<Current>
  /** What ended. Of several records with one key, `by` says how often each reason is told, not of which. */
  readonly ended: ReadonlyArray<Current & { readonly by: EndedBy }>
}

/** A record, and what the answer says that had it last. */
interface Read extends Said {
  readonly as_of: string
  readonly session: string
  /** What did not succeed of what feeds it, or was not asked for then: what it has may be missing. */
  readonly lacks: ReadonlyArray<string>
}

interface Scope {
  /** No requested feature is known to feed it: any does. */
  readonly loose: boolean
  /** Nothing that feeds it succeeded in what answered it last. */
  readonly isShort: boolean
  readonly rows: ReadonlyArray<Read>
}

/** What one list has and the other has not, each as often as it is there. */
export const without = <A>(
  one: ReadonlyArray<A>,
  other: ReadonlyArray<A>,
  textOf: (item: A) => string,
): ReadonlyArray<A> => {
  const rest = new Map<string, number>()
  for (const item of other) rest.set(textOf(item), (rest.get(textOf(item)) ?? 0) + 1)
  return one.filter((item) => {
    const text = textOf(item)
    const left = rest.get(text) ?? 0
    if (left > 0) rest.set(text, left - 1)
    return left === 0
  })
}

const contentOf = ({ scope, content }: Current): string => `${scope} ${content}`

/** Of the rows of a scope that ended by an answer, as many have changed as others of their key came. */
const reasons = (ended: ReadonlyArray<Current>, begun: ReadonlyArray<Current>): ReadonlyArray<EndedBy> => {
  const places = new Map<string, number>()
  const placeOf = ({ scope, key }: Current) => `${scope} ${key}`
  for (const one of begun)
    if (one.key !== undefined) places.set(placeOf(one), (places.get(placeOf(one)) ?? 0) + 1)
  return ended.map((one) => {
    const left = one.key === undefined ? 0 : (places.get(placeOf(one)) ?? 0)
    if (left > 0) places.set(placeOf(one), left - 1)
    return left > 0 ? "changed" : "gone"
  })
}

type Feeds = (feature: string, kind: string) => boolean

interface Asking {
  readonly run: ToldRun
  readonly task: ToldTask
}

/**
 * What somebody asks for: by job, of its newest whole run, and of those after it that go on, were a part or a rerun. A
 * rerun takes back what it does not ask for any more and its night has not answered; alone, it asks for nothing.
 */
class Asked {
  readonly #runs: Array<ToldRun> = []
  readonly #byJob = new Map<string, ReadonlyArray<Asking>>()
  readonly #feeds: Feeds

  constructor(feeds: Feeds) {
    this.#feeds = feeds
  }

  add(run: ToldRun): void {
    const { job, kind, isInterim = false, replaces, tasks } = run
    this.#runs.push(run)
    if (kind === "empty") return
    const own = tasks.filter(({ isAlone }) => !isAlone).map((task): Asking => ({ run, task }))
    const isMore = isInterim || kind !== "whole"
    this.#byJob.set(job, isMore ? [...(this.#byJob.get(job) ?? []), ...own] : own)
    if (!isMore) for (const other of replaces) this.#byJob.delete(other)
  }

  /** What the runs of a night have answered so far. */
  #answered(subject: string, night: string | undefined): ReadonlyArray<string> {
    return this.#runs
      .filter(({ run_id, parent }) => night !== undefined && (run_id === night || parent === night))
      .flatMap(({ tasks }) => tasks.filter((task) => task.subject === subject && task.isOpen !== true))
      .flatMap(({ told, succeeded }) => told.filter((feature) => succeeded.includes(feature)))
  }

  /** Undefined stands for everything that the engine has. */
  #featuresOf(subject: string): ReadonlyArray<string | undefined> {
    return [...this.#byJob.values()].flatMap((all) => {
      const own = all.filter(({ task }) => task.subject === subject)
      if (own.every(({ run }) => run.kind === "rerun")) return []
      return own.flatMap(({ task: { features } }, at) => {
        if (features.length === 0) return [undefined]
        const again = own
          .slice(at + 1)
          .filter(({ run, task }) => run.kind === "rerun" && task.features.length > 0)
        return features.filter((feature) =>
          again.every(({ run: { parent }, task }) =>
            [...task.features, ...this.#answered(subject, parent)].includes(feature),
          ),
        )
      })
    })
  }

  has(subject: string, kind: string, loose: boolean): boolean {
    return this.#featuresOf(subject).some(
      (feature) => loose || feature === undefined || this.#feeds(feature, kind),
    )
  }

  /** Features that feed a kind, asked for by name, of which a task does not tell. */
  untold({ subject, told }: ToldTask, kind: string): ReadonlyArray<string> {
    return this.#featuresOf(subject).flatMap((feature) =>
      feature !== undefined && this.#feeds(feature, kind) && !told.includes(feature) ? [feature] : [],
    )
  }
}

interface Answer extends Omit<Scope, "rows"> {
  readonly session: string
  readonly lacks: ReadonlyArray<string>
  readonly rows: ReadonlyArray<Said>
}

/**
 * What a run answers, by scope. `known` are the scopes that ever had a record. If nothing that feeds it succeeded,
 * records answer a scope in which nothing better is current, whatever the task ended with.
 */
const answersOf = (
  run: ToldRun,
  kinds: ReadonlyArray<string>,
  feeds: Feeds,
  known: Set<string>,
  { asked, before }: { readonly asked: Asked; readonly before: ReadonlyMap<string, Scope> },
): ReadonlyMap<string, Answer> => {
  const answers = new Map<string, Answer>()
  for (const task of run.tasks)
    for (const kind of task.isOpen === true ? [] : kinds) {
      const { subject, session, told, succeeded, rows: all } = task
      const scope = `${subject}|${kind}`
      const rows = all.filter((row) => row.kind === kind)
      if (rows.length > 0) known.add(scope)
      if (!known.has(scope)) continue
      const feeding = told.filter((feature) => feeds(feature, kind))
      const isLoose = feeding.length === 0
      const [bad, good] = [false, true].map((is) =>
        (isLoose ? told : feeding).filter((feature) => succeeded.includes(feature) === is),
      )
      const isShort = good!.length === 0 || (isLoose && rows.length === 0)
      const place = before.get(scope)
      const isVacant = place === undefined || place.isShort || place.rows.length === 0
      const newest = rows.filter(({ isEarlier }) => !isEarlier)
      const lacks = [...bad!, ...asked.untold(task, kind)]
      if (!isShort || (newest.length > 0 && isVacant))
        answers.set(scope, { loose: isLoose, isShort, session, lacks, rows: newest })
    }
  return answers
}

/**
 * Which of the rows that an answer has not found stay: those that may be missing because of what it lacks, as they were
 * read with that; if nothing that feeds it succeeded, all with a key that another session said. Once something did, what came
 * without stays no longer. One that is alone with its key has changed into the one that came alone with it.
 */
const staying = (
  left: ReadonlyArray<Read>,
  came: ReadonlyArray<Said>,
  { isShort, session, lacks }: Answer,
  wasShort: boolean,
): ReadonlyArray<Read> =>
  left.filter((row) => {
    const [changed, into] = [left, came].map((rows) => rows.filter(({ key }) => key === row.key).length)
    const isPaired = row.key !== undefined && changed === 1 && into === 1
    if (isPaired) return false
    return isShort
      ? row.key !== undefined && row.session !== session
      : !wasShort && lacks.some((feature) => !row.lacks.includes(feature))
  })

/** Each moment of a folder whose runs are these, in the order in which they began. */
export const moments = <R extends ToldRun>(
  runs: ReadonlyArray<R>,
  kinds: ReadonlyArray<string>,
  feeds: Feeds,
): ReadonlyArray<Moment<R>> => {
  const asked = new Asked(feeds)
  const alone = new Set(
    runs.flatMap(({ tasks }) => tasks.filter((task) => task.isAlone)).map((t) => t.subject),
  )
  const scopes = new Map<string, Scope>()
  const known = new Set<string>()
  const all: Array<Moment<R>> = []
  let e = ""
  for (const run of runs) {
    e = e > run.date ? e : run.date
    asked.add(run)
    const answers = answersOf(run, kinds, feeds, known, { asked, before: scopes })
    const begun: Array<Current> = []
    const ended: Array<Current & { readonly by: EndedBy }> = []
    for (const scope of new Set([...scopes.keys(), ...answers.keys()])) {
      const [kind = ""] = scope.split("|").slice(-1)
      const subject = scope.slice(0, -kind.length - 1)
      const answer = answers.get(scope)
      const before = scopes.get(scope)
      const isAsked = alone.has(subject) || asked.has(subject, kind, answer?.loose ?? before?.loose ?? false)
      const currentOf = (row: Read): Current => ({ ...row, scope })
      const were = before?.rows ?? []
      if (!isAsked) {
        if (before !== undefined) scopes.set(scope, { ...before, rows: [] })
        ended.push(...were.map((row) => ({ ...currentOf(row), by: "not requested" as const })))
      } else if (answer !== undefined) {
        const { session, lacks } = answer
        const now = answer.rows.map((row): Read => ({ ...row, as_of: e, session, lacks }))
        const came = without(now, were, ({ content }) => content)
        const left = without(were, now, ({ content }) => content)
        const stay = staying(left, came, answer, before?.isShort === true)
        const over = left.filter((row) => !stay.includes(row)).map(currentOf)
        scopes.set(scope, { ...answer, rows: [...now, ...stay] })
        begun.push(...came.map(currentOf))
        const by = reasons(over, came.map(currentOf))
        ended.push(...over.map((one, index) => ({ ...one, by: by[index]! })))
      }
    }
    const current = [...scopes].flatMap(([scope, { rows }]) =>
      rows.map((row): Current => ({ ...row, scope })),
    )
    all.push({ run, e, current, begun, ended })
  }
  return all
}

// What the tables say, beside the model.

/** A version of a record as the database has it. */
export interface FoundVersion {
  readonly scope: string
  readonly key: string | undefined
  readonly content: string
  readonly record_id: string
  readonly since: number
  readonly until: number | undefined
  readonly valid_from: string
  readonly valid_to: string | undefined
  readonly ended_by: string | undefined
  /** Of its scope. */
  readonly as_of: string
}

export const sorted = (all: ReadonlyArray<unknown>): ReadonlyArray<string> =>
  all.map((one) => JSON.stringify(one)).toSorted()

/** Two lists with the same items in any order; what one lacks of the other is told. */
export const sameItems = (
  found: ReadonlyArray<unknown>,
  expected: ReadonlyArray<unknown>,
  what: string,
): void => {
  const [is, should] = [sorted(found), sorted(expected)]
  const asIs = (text: string) => text
  const [unexpected, missing] = [without(is, should, asIs), without(should, is, asIs)]
  const few = (texts: ReadonlyArray<string>) => `${texts.length}: ${texts.slice(0, 4).join(" ")}`
  if (unexpected.length + missing.length > 0)
    assert.fail(`${what}\n  unexpected ${few(unexpected)}\n  missing ${few(missing)}`)
}

/** Records of one key of which there was never more than one at a time: each is one record over all nights. */
const checkIdentity = (versions: ReadonlyArray<FoundVersion>, what: string): void => {
  for (const [place, all] of Map.groupBy(versions, ({ scope, key }) => `${scope} ${key}`)) {
    if (all[0]?.key === undefined) continue
    const ordered = all.toSorted((one, other) => one.since - other.since)
    const isSingle = ordered.every((one, at) => {
      const next = ordered[at + 1]
      return next === undefined || (one.until !== undefined && one.until <= next.since)
    })
    const ids = new Set(all.map(({ record_id }) => record_id))
    if (isSingle) assert.strictEqual(ids.size, 1, `${what}: ${place} has several ids`)
  }
}

/** Every version that there ever was, in each of the moments. `sequenceOf`: the number of a run in the tables. */
export const checkVersions = <R extends ToldRun>(
  versions: ReadonlyArray<FoundVersion>,
  expected: ReadonlyArray<Moment<R>>,
  sequenceOf: (run: R) => number,
  what: string,
): void => {
  const open = versions.filter(({ until }) => until === undefined)
  sameItems(
    open.map(({ scope, content, as_of }) => [scope, content, as_of]),
    (expected.at(-1)?.current ?? []).map(({ scope, content, as_of }) => [scope, content, as_of]),
    `${what}: what is current`,
  )
  let [begins, ends] = [0, 0]
  for (const { run, e, begun, ended } of expected) {
    const at = sequenceOf(run)
    const since = versions.filter((one) => one.since === at)
    const until = versions.filter((one) => one.until === at)
    begins += since.length
    ends += until.length
    sameItems(
      since.map(({ scope, content, valid_from }) => [scope, content, valid_from]),
      begun.map(({ scope, content }) => [scope, content, e]),
      `${what}: what begins with ${run.run_id}`,
    )
    sameItems(
      until.map(({ scope, content, valid_to }) => [scope, content, valid_to]),
      ended.map(({ scope, content }) => [scope, content, e]),
      `${what}: what ends with ${run.run_id}`,
    )
    sameItems(
      until.map(({ scope, key, ended_by }) => [scope, key, ended_by]),
      ended.map(({ scope, key, by }) => [scope, key, by]),
      `${what}: why it ends with ${run.run_id}`,
    )
    for (const { scope, key, ended_by, record_id } of until)
      if (ended_by === "changed")
        assert.isTrue(
          since.some((one) => one.scope === scope && one.key === key && one.record_id === record_id),
          `${what}: ${record_id} changed with ${run.run_id} and is not there`,
        )
    const alive = versions.filter((one) => one.since <= at && (one.until === undefined || one.until > at))
    const ids = new Set(alive.map(({ scope, record_id }) => `${scope} ${record_id}`))
    assert.strictEqual(ids.size, alive.length, `${what}: a record stands twice after ${run.run_id}`)
  }
  assert.deepStrictEqual(
    [begins, ends],
    [versions.length, versions.length - open.length],
    `${what}: versions of no run`,
  )
  checkIdentity(versions, what)
}

/** A change as `changes` tells it: contents as in the model, null where there is none. */
export interface FoundChange {
  readonly scope: string
  readonly change: string
  readonly changed_columns: unknown
  readonly before: string | null
  readonly after: string | null
}

/** What is told to have come and gone between two moments is what differs between their contents. */
export const checkChanges = <R extends ToldRun>(
  found: ReadonlyArray<FoundChange>,
  earlier: Moment<R>,
  later: Moment<R>,
  what: string,
): void => {
  const asIs = (text: string) => text
  const textsOf = (side: "before" | "after") =>
    found.flatMap((one) => (one[side] === null ? [] : [`${one.scope} ${one[side]}`]))
  const [gone, come] = [textsOf("before"), textsOf("after")]
  const [was, is] = [earlier.current.map(contentOf), later.current.map(contentOf)]
  sameItems(come, without(is, was, asIs), `${what}: what came`)
  sameItems(gone, without(was, is, asIs), `${what}: what is gone`)
  for (const { change, changed_columns } of found)
    assert.strictEqual(
      change === "changed",
      Array.isArray(changed_columns) && changed_columns.length > 0,
      `${what}: ${change}`,
    )
}
