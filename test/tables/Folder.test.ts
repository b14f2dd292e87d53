/**
 * A whole output folder against the model: nights of two jobs, published, held back, accepted, resumed and rolled back,
 * with interim versions, changed schemas, months compacted, customers forgotten, everything rebuilt. After each edit
 * `main`, `history`, `nights`, `changes` and the Parquet beside them are what the model tells from the bodies.
 * One folder goes through every edit in a fixed order; SEEDS=N adds as many whose edits are drawn, from seed FROM on and
 * with NIGHTS at most. With EVERY=N only every Nth edit is compared, and the last one: what is wrong stays wrong.
 */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { forget, planForget } from "../../src/folder/Forget.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { compact } from "../../src/tables/Compact.ts"
import { openStore, openStoreAsked } from "../../src/tables/OpenStore.ts"
import { filesBelow } from "../../src/tables/Manifest.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { PublisherDuckDb } from "../../src/tables/PublisherDuckDb.ts"
import { rebuild } from "../../src/tables/Rebuild.ts"
import { rollback } from "../../src/tables/Rollback.ts"
import { verify } from "../../src/tables/Verify.ts"
import { drawing } from "../harness/Drawing.ts"
import { anId } from "../harness/Id.ts"
import { check, checkForgotten, versionIn, type World as Compared } from "./checkFolder.ts"
import { ModelFolder, type Known } from "./modelFolder.ts"
import {
  beginNight,
  customers,
  doTask,
  drawTasks,
  epoch,
  planTasks,
  taskId,
  writeSchemas,
} from "./modelNights.ts"
import type { Night, Schemas } from "./modelNights.ts"
import { append, folder, foundation } from "./night.ts"

const dayMs = 86_400_000
const dateOf = (day: number): string => new Date(epoch + day * dayMs).toISOString().slice(0, 10)

interface World extends Compared {
  /** Types that the amount takes turns with. */
  readonly types: ReadonlyArray<Schemas["amount"]>
  day: number
  nights: number
  edits: number
  /** Runs whose version is kept aside. */
  readonly aside: Set<string>
  readonly checkedEvery: number
}

const optionsOf = ({ root, parquet }: World) => ({
  root,
  parquet,
  schemasFolder: `${root}-schemas`,
  share: "none" as const,
  toolVersion: "0.1.0",
})
/** As commands have it: only a run applies the job's `retain`. */
const commandOptions = (world: World) => ({ ...optionsOf(world), versionsKept: Number.POSITIVE_INFINITY })
const storeOf = (world: World) => openStore(commandOptions(world))

/** A publisher as a process has it that begins now; `holds`: a gate of the job that no night passes. */
const publishing = <A, E>(
  world: World,
  work: (publisher: Publisher["Service"]) => Effect.Effect<A, E>,
  holds = false,
) => {
  const gates = { keys: false, tests: [], ...(holds ? { coverage: 1.01 } : {}) }
  const layer = PublisherDuckDb.layer({ ...optionsOf(world), gates })
  return Effect.provide(Effect.flatMap(Publisher, work), layer)
}

const done = Effect.fnUntraced(function* (world: World, what: string) {
  world.what = `${world.what}; ${what}`
  world.edits += 1
  const aside = filesBelow(join(world.root, "published/held")).map((name) => name.replace(/\.duckdb$/, ""))
  assert.deepStrictEqual(aside.toSorted(), [...world.aside].toSorted(), `${world.what}: versions aside`)
  if (world.edits % world.checkedEvery === 0) yield* check(world)
})

// Edits.

const knownOf = ({ model }: World, ...states: ReadonlyArray<Known["state"]>) =>
  [...model.known.values()].filter(({ state }) => states.includes(state))

const ended = (run: Night, leftovers: boolean) =>
  append([
    { _tag: "RunEnded", run_id: anId(run.run_id), exit_code: leftovers ? 3 : 0, leftovers },
    { _tag: "OutcomePublished", run_id: anId(run.run_id) },
  ])

/** Takes the rows of a run that a gate holds back out of the version, if it was published while it went on. */
const withdraw = ({ root, model }: World, { run_id }: Night): void => {
  const { current } = model
  const runs = model.withoutInterim(current.runs, run_id)
  if (runs === current.runs) return
  model.replace({ ...current, version: versionIn(root), runs }, { trims: true })
}

const publishRun = Effect.fnUntraced(function* (
  world: World,
  run_id: string,
  holds = false,
  isAccepted = false,
) {
  const { model } = world
  const known = model.known.get(run_id)!
  const { run } = known
  const also = run.tasks.length === 0 && known.state !== "held" ? [] : model.heldBefore(known)
  const result = yield* Effect.result(publishing(world, ({ publish }) => publish(anId(run_id)), holds))
  // Of a part of a job it is not asked how much it covers.
  const isHeld = holds && !isAccepted && run.tasks.length > 0 && run.kind !== "part"
  assert.strictEqual(result._tag, isHeld ? "Failure" : "Success", `${world.what}: ${JSON.stringify(result)}`)
  if (result._tag === "Failure") {
    if (result.failure._tag !== "PublicationHeld") return yield* result.failure
    const { database, gates } = result.failure
    yield* append([{ _tag: "RunHeld", run_id: anId(run_id), database, gates }])
    yield* ended(run, true)
    model.derivation()
    withdraw(world, run)
    for (const one of also) world.aside.delete(one.run.run_id)
    world.aside.add(run_id)
    const wasPublished = known.state === "published" || known.wasPublished === true
    model.tell(run_id, { state: "held", ...(wasPublished && { wasPublished }) })
    return yield* done(world, `${run_id} is held back`)
  }
  const { version, receipts, released = [] } = result.success
  const own = { run_id, receipts }
  assert.deepStrictEqual(
    released.map((one) => String(one.run_id)).toSorted(),
    also.map((one) => one.run.run_id).toSorted(),
    `${world.what}: ${run_id} is published with those that were held back`,
  )
  for (const one of [...released, own]) {
    yield* append([{ _tag: "RunPublished", run_id: anId(one.run_id), version, receipts: one.receipts }])
    yield* ended(model.known.get(one.run_id)!.run, false)
    model.tell(one.run_id, { state: "published" })
    world.aside.delete(one.run_id)
  }
  model.publish(version, [...also.map((one) => one.run), run])
  yield* done(world, `${run_id} is published${also.length > 0 ? ` with ${also.length} held ones` : ""}`)
})

const drawNight = (world: World): Night => {
  const { draw, model, forgotten } = world
  const { chance, int, pick, some } = draw
  world.day += int(0, 3)
  world.nights += 1
  // Of one job there is one run at a time.
  const busy = knownOf(world, "open")[0]?.run.job
  const job = busy === undefined ? (chance(0.25) ? "b" : "a") : busy === "a" ? "b" : "a"
  const earlier = [...model.known.values()].filter(({ run }) => run.job === job && run.kind === "whole")
  const parent = earlier.length > 0 && chance(0.2) ? pick(earlier).run : undefined
  const present = customers.filter((customer) => !forgotten.has(customer))
  const share = parent !== undefined || chance(0.3) ? 0.35 : 0.8
  const isEmpty = parent === undefined && chance(0.05)
  const tasks = isEmpty ? [] : drawTasks(draw, some(present, share), share)
  return {
    run_id: `${job}.${String(world.nights).padStart(2, "0")}`,
    job,
    date: parent?.date ?? dateOf(world.day),
    kind:
      parent !== undefined
        ? "rerun"
        : tasks.length === 0
          ? "empty"
          : world.nights % 5 === 3
            ? "part"
            : "whole",
    parent: parent?.run_id,
    replaces: job === "b" && chance(0.2) ? ["a"] : [],
    tasks,
    fetched: world.nights,
  }
}

const begin = Effect.fnUntraced(function* (world: World, more: Partial<Night> = {}) {
  const run = { ...drawNight(world), ...more }
  yield* beginNight(run)
  yield* planTasks(run, run.tasks)
  const state = yield* Effect.flatMap(Ledger, (ledger) => ledger.state(anId(run.run_id)))
  world.model.known.set(run.run_id, { run, sequence: state?.sequence ?? 0, state: "open" })
  return run.run_id
})

/** A version with some tasks of a run that goes on; the others may be done after it. */
const interim = Effect.fnUntraced(function* (world: World, run_id: string, doneTasks: Set<string>) {
  const { model, draw } = world
  const { run } = model.known.get(run_id)!
  for (const task of draw.some(run.tasks, 0.5)) {
    if (doneTasks.has(taskId(run, task))) continue
    yield* doTask(run, task)
    doneTasks.add(taskId(run, task))
  }
  const over = new Set(draw.some([...doneTasks], 0.9))
  const told = yield* publishing(world, ({ publishInterim }) => publishInterim(anId(run_id), over))
  const isRefused = model.current.returned !== undefined
  assert.strictEqual(
    told._tag,
    isRefused ? "InterimRefused" : "InterimPublished",
    `${world.what}: ${JSON.stringify(told)}`,
  )
  if (told._tag === "InterimRefused") return
  yield* append([told])
  const { current } = model
  const derived = model.derivation()
  const runs = new Map(current.runs).set(run_id, { run, derived, over })
  const next = { version: told.version, runs, schemas: derived, isInterim: true }
  model.replace(next, { trims: true })
  yield* done(world, `${run_id} goes on`)
})

/** More tasks of a run that was published; of one that had none, or of customers that came late. */
const resume = Effect.fnUntraced(function* (world: World) {
  const { model, draw, forgotten } = world
  const chosen = knownOf(world, "published")
    .filter(({ run }) => run.kind !== "rerun" && run.kind !== "part")
    .slice(-3)
  if (chosen.length === 0) return
  const { run } = draw.pick(chosen)
  const present = customers.filter((customer) => !forgotten.has(customer))
  const more = drawTasks(draw, present, 0.4).filter(
    (task) => !run.tasks.some((one) => taskId(run, one) === taskId(run, task)),
  )
  if (more.length === 0) return
  const longer: Night = { ...run, kind: "whole", tasks: [...run.tasks, ...more] }
  yield* append([{ _tag: "RunResumed", run_id: anId(run.run_id) }])
  yield* planTasks(longer, more)
  model.tell(run.run_id, { run: longer })
  const doneTasks = new Set<string>()
  if (run.tasks.length === 0 && draw.chance(0.5)) yield* interim(world, run.run_id, doneTasks)
  for (const task of more) if (!doneTasks.has(taskId(run, task))) yield* doTask(longer, task)
  yield* publishRun(world, run.run_id, draw.chance(0.3))
})

const rollBack = Effect.fnUntraced(function* (world: World) {
  const { model } = world
  const { current, kept, newest } = model
  const told = yield* Effect.flatMap(storeOf(world), rollback)
  const target = kept.findLast(({ version }) => version < (current.returned?.to ?? current.version))
  if (target === undefined) return assert.strictEqual(told._tag, "NoEarlierVersion", world.what)
  const to = target.version
  const from = newest.isInterim ? to : newest.version
  assert.deepInclude(told, { _tag: "RolledBack", to, from }, world.what)
  model.replace({ ...target, version: versionIn(world.root), isInterim: false, returned: { to, from } })
  yield* done(world, `back to ${to}`)
})

const acceptOne = Effect.fnUntraced(function* (world: World) {
  const held = knownOf(world, "held")
  if (held.length === 0) return
  const { run_id } = world.draw.pick(held).run
  yield* append([{ _tag: "RunAccepted", run_id: anId(run_id) }])
  yield* publishRun(world, run_id, true, true)
})

const forgetOne = Effect.fnUntraced(function* (world: World) {
  const { model, draw, forgotten, root } = world
  const present = customers.filter((customer) => !forgotten.has(customer))
  if (present.length < 3) return
  const customer = draw.pick(present)
  const store = yield* storeOf(world)
  const plan = yield* planForget(store, anId(customer))
  if (plan === undefined) return
  yield* forget(store, plan, () => Effect.succeed(true))
  forgotten.add(customer)
  world.aside.clear()
  model.forget(customer)
  const version = versionIn(root)
  if (version !== model.current.version) model.replace({ ...model.current, version }, { isInstead: true })
  yield* done(world, `${customer} is forgotten`)
  yield* checkForgotten(world)
})

const compactMonths = Effect.fnUntraced(function* (world: World) {
  const { model, root, day } = world
  const store = yield* storeOf(world)
  yield* compact(store, { overBy: epoch + day * dayMs, isDry: false, monthsMax: 12 })
  model.replace({ ...model.current, version: versionIn(root) }, { isInstead: true })
  yield* done(world, "compacted")
})

const rebuildAll = Effect.fnUntraced(function* (world: World) {
  const { model } = world
  const store = yield* openStoreAsked(commandOptions(world))
  const { version, kept } = yield* rebuild(store, true)
  const published = knownOf(world, "published")
  assert.deepStrictEqual(
    kept.map(({ run_id }) => run_id).toSorted(),
    [...model.known.values()].flatMap((one) =>
      one.state === "held" && one.wasPublished === true ? [one.run.run_id] : [],
    ),
    `${world.what}: runs that keep their tables`,
  )
  if (version === undefined) return
  model.publish(
    version,
    published.map(({ run }) => run),
  )
  yield* done(world, "rebuilt")
})

const outcome = Effect.fnUntraced(function* (world: World) {
  const { model, draw, root } = world
  const { current } = model
  const chosen = knownOf(world, "published").filter(({ run }) => current.runs.has(run.run_id))
  if (chosen.length === 0) return
  const { run } = draw.pick(chosen)
  yield* publishing(world, ({ publishOutcome }) => publishOutcome(anId(run.run_id)))
  const isWhole = current.returned !== undefined || (model.schemas.odds && !current.schemas.odds)
  if (isWhole) model.publish(versionIn(root), [run])
  else model.replace({ ...current, version: versionIn(root) }, { isInstead: true, trims: true })
  yield* done(world, `outcome of ${run.run_id}`)
})

const changeSchemas = (world: World, more: Partial<Schemas> = {}): void => {
  const { draw, model, types, root } = world
  const { odds } = model.schemas
  const drawn = { amount: draw.pick(types), note: draw.chance(0.6), odds: odds || draw.chance(0.4) }
  model.schemas = { ...drawn, ...more }
  writeSchemas(`${root}-schemas`, model.schemas)
  world.what += `; schemas ${JSON.stringify(model.schemas)}`
}

/** As a process of its own does it. */
const alone = <A, E, R>(world: World, work: Effect.Effect<A, E, R>) =>
  Effect.provide(work, foundation(world.root))

const edits = Effect.fnUntraced(function* (world: World) {
  const { chance } = world.draw
  for (let share = 0.12; chance(share); share = 0.4) yield* alone(world, rollBack(world))
  if (chance(0.25)) yield* alone(world, acceptOne(world))
  if (chance(0.06)) yield* alone(world, forgetOne(world))
  if (chance(0.1)) yield* alone(world, compactMonths(world))
  if (chance(0.08)) yield* alone(world, rebuildAll(world))
  if (chance(0.12)) yield* alone(world, outcome(world))
  if (chance(0.12)) yield* alone(world, resume(world))
})

/** The beginning of a night, perhaps with a version while it goes on; then what is left of it. */
const beginning = Effect.fnUntraced(function* (world: World) {
  const { draw, model } = world
  if (draw.chance(0.15)) changeSchemas(world)
  const run_id = yield* begin(world)
  const doneTasks = new Set<string>()
  const isSome = model.known.get(run_id)!.run.tasks.length > 0
  if (isSome && draw.chance(0.25)) yield* interim(world, run_id, doneTasks)
  return { run_id, doneTasks }
})
const rest = Effect.fnUntraced(function* (
  world: World,
  { run_id, doneTasks }: Effect.Success<ReturnType<typeof beginning>>,
  holds = world.draw.chance(0.2),
) {
  const { run } = world.model.known.get(run_id)!
  for (const task of run.tasks) if (!doneTasks.has(taskId(run, task))) yield* doTask(run, task)
  yield* publishRun(world, run_id, holds)
})

/** `meanwhile` happens while it goes on. */
const night = <E, R>(world: World, meanwhile: Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    const begun = yield* alone(world, beginning(world))
    yield* meanwhile
    yield* alone(world, rest(world, begun))
  })

/** A run of another job, or whatever a person does. */
const meanwhile = Effect.fnUntraced(function* (world: World) {
  if (world.draw.chance(0.7)) return
  if (world.draw.chance(0.5)) yield* night(world, Effect.void)
  else yield* edits(world)
})

const nightsMax = Number(process.env["NIGHTS"] ?? 5)

/** Every edit in an order in which it meets what others left; what the nights have is drawn. */
const tour = Effect.fnUntraced(function* (world: World) {
  const begun = Effect.fnUntraced(function* () {
    const tasks = drawTasks(
      world.draw,
      customers.filter((one) => !world.forgotten.has(one)),
      0.5,
    )
    const plain = { job: "a", kind: "whole", parent: undefined, replaces: [], tasks } as const
    const run_id = yield* begin(world, plain)
    return { run_id, doneTasks: new Set<string>() }
  })
  const whole = (holds: boolean) =>
    alone(
      world,
      Effect.flatMap(begun(), (run) => Effect.as(rest(world, run, holds), run.run_id)),
    )
  const goesOn = ({ run_id, doneTasks }: Effect.Success<ReturnType<typeof begun>>) =>
    interim(world, run_id, doneTasks)
  const accepted = (run_id: string) =>
    alone(
      world,
      Effect.andThen(
        append([{ _tag: "RunAccepted", run_id: anId(run_id) }]),
        publishRun(world, run_id, true, true),
      ),
    )
  const first = yield* whole(false)
  yield* whole(true)
  const newest = yield* whole(true)
  yield* accepted(newest)
  // A schema more, and another type: the end of a run brings them all.
  changeSchemas(world, { amount: "INTEGER", note: true, odds: true })
  yield* alone(world, outcome(world))
  const second = yield* alone(world, begun())
  yield* alone(world, goesOn(second))
  yield* alone(world, rollBack(world))
  yield* alone(world, goesOn(second))
  yield* alone(world, rest(world, second, false))
  world.day += 40
  yield* alone(world, compactMonths(world))
  yield* alone(world, publishRun(world, first))
  const third = yield* alone(world, begun())
  yield* alone(world, goesOn(third))
  yield* alone(world, forgetOne(world))
  yield* alone(world, rest(world, third, true))
  changeSchemas(world, { amount: "VARCHAR", note: false })
  yield* alone(world, rebuildAll(world))
  yield* alone(world, rollBack(world))
  // It stays aside, and what was put back stays; then the next version goes on from the newest.
  yield* alone(world, publishRun(world, third.run_id, true))
  yield* accepted(third.run_id)
})

const random = Effect.fnUntraced(function* (world: World) {
  const count = world.draw.int(Math.ceil(nightsMax / 2), nightsMax)
  for (let index = 0; index < count; index++) {
    yield* night(world, meanwhile(world))
    yield* edits(world)
  }
})

const live = Effect.fnUntraced(function* (seed: number, isTour = false) {
  const root = yield* folder
  const draw = drawing(seed + 900_000)
  const types = draw.pick<World["types"]>([
    ["DECIMAL(9,2)", "VARCHAR", undefined],
    ["DECIMAL(9,2)", "INTEGER", undefined],
    ["VARCHAR", "INTEGER", undefined],
  ])
  const schemas: Schemas = { amount: types[0], note: draw.chance(0.5), odds: false }
  writeSchemas(`${root}-schemas`, schemas)
  yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(`${root}-schemas`, { recursive: true })))
  const model = new ModelFolder(schemas)
  const world: World = {
    root,
    model,
    draw,
    types,
    // It costs as much as all else.
    parquet: isTour || draw.chance(0.35) ? ["current", "history"] : [],
    forgotten: new Set(),
    day: 0,
    nights: 0,
    edits: 0,
    aside: new Set(),
    checkedEvery: Number(process.env["EVERY"] ?? (isTour ? 3 : 1)),
    what: `seed ${seed}`,
  }
  yield* Effect.gen(function* () {
    yield* isTour ? tour(world) : random(world)
    const problems = Effect.andThen(checkForgotten(world), Effect.flatMap(storeOf(world), verify))
    yield* alone(world, check(world))
    assert.deepStrictEqual(yield* alone(world, problems), [], world.what)
  }).pipe(Effect.catch(({ message }) => Effect.die(new Error(`${world.what}: then ${message}`))))
}, Effect.scoped)

describe("an output folder", () => {
  it.live(
    "has what a model computes from the bodies, whatever edits it goes through [promise 17] [promise 18]",
    () =>
      Effect.andThen(
        live(1, true),
        Effect.forEach(
          Array.from(
            { length: Number(process.env["SEEDS"] ?? 0) },
            (_, i) => Number(process.env["FROM"] ?? 2) + i,
          ),
          (seed) => live(seed),
          { discard: true },
        ),
      ),
    3_600_000,
  )
})
