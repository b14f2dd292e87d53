/**
 * `npm run unusable -- [--from K] [--count N] [--only TEXT] [--processes N]`: throws in every function that
 * handles what the service says of one customer, from each moment in which it is called, one throw a night.
 * Everybody else's tables must equal an undisturbed night's, the customer's execution must stay and must not be
 * started again. Which functions there are, and when they are called, the undisturbed night tells.
 */
import { fork } from "node:child_process"
import { once } from "node:events"
import { parseArgs } from "node:util"
import { figuresLine } from "../promises/Figure.ts"
import type { ThrowPoint } from "./Probes.ts"
import { moments, throwingNight, type Moment, type NightLeft } from "./ThrowingNight.ts"

const { values } = parseArgs({
  options: {
    /** The first throw, by its number. */
    from: { type: "string", default: "1" },
    /** So many throws, spread over all of them; all by default. */
    count: { type: "string" },
    only: { type: "string" },
    processes: { type: "string", default: "1" },
    /** One of those processes: it throws where it is told. */
    worker: { type: "boolean", default: false },
    verbose: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
})

type Point = ThrowPoint<Moment>
type Numbered = readonly [number: number, point: Point]

/** What one throw left. */
type Thrown = Pick<NightLeft, "rows" | "complaints" | "threw" | "isLate" | "verdict">
const throwAt = async (point: Point): Promise<Thrown> => {
  const { rows, complaints, threw, isLate, verdict } = await throwingNight(point)
  return { rows, complaints, threw, isLate, verdict }
}

const undisturbedNight = async (isResumed: boolean) => {
  const night = await throwingNight(undefined, isResumed)
  if (night.complaints.length === 0 && night.rows.length > 0) return night
  console.error(`the undisturbed night went wrong: ${night.complaints.join("; ") || "no rows"}`)
  return process.exit(1)
}

/**
 * Every throw that the undisturbed nights know of, and is meant. What a resumed night calls too is asked of
 * it again only where it decides how to continue.
 */
const pointsOf = (night: NightLeft, resumed: NightLeft): ReadonlyArray<Numbered> => {
  const again = [...resumed.called.keys()].filter(
    (id) => id.startsWith("execution/") || !night.called.has(id),
  )
  const pairs = [...night.called].flatMap(([id, at]) =>
    moments.filter((from) => at.has(from)).map((from) => ({ id, from })),
  )
  const all = [...pairs, ...again.map((id) => ({ id, from: "resumed" as const }))]
    .filter(({ id }) => values.only === undefined || id.includes(values.only))
    .toSorted((one, other) => (one.id < other.id ? -1 : one.id > other.id ? 1 : 0))
  const step = values.count === undefined ? 1 : Math.max(1, all.length / Number(values.count))
  return all
    .map((point, at): Numbered => [at + 1, point])
    .filter(([number]) => number >= Number(values.from))
    .filter(([number]) => Math.floor((number - 1) / step) !== Math.floor((number - 2) / step))
}

/** Until publishing begins, the throw is what the task ends with; after that only its rows are left out. */
const isSettled = ({ isLate, verdict }: Thrown): boolean => isLate || verdict === "failed ANSWER_UNUSABLE"

const complaintsOf = (thrown: Thrown, undisturbed: NightLeft): ReadonlyArray<string> => {
  if (!thrown.threw) return [...thrown.complaints, "it was not reached"]
  if (thrown.complaints.length > 0) return thrown.complaints
  if (thrown.rows.join("\n") !== undisturbed.rows.join("\n")) return ["the others' tables differ"]
  return isSettled(thrown) ? [] : [`the task ended as ${thrown.verdict}`]
}

/** A process that throws where it is asked to. */
const openWorker = () => {
  const child = fork(import.meta.filename, ["--worker"])
  const over = once(child, "exit").then(() => Promise.reject(new Error("a process ended early")))
  const throwThere = async (point: Point) => {
    const answer = once(child, "message").then(([thrown]) => thrown as Thrown)
    child.send(point)
    return Promise.race([answer, over])
  }
  return { throwThere, close: () => child.disconnect() }
}

const campaign = async () => {
  const startedAt = performance.now()
  const night = await undisturbedNight(false)
  const resumed = await undisturbedNight(true)
  const points = pointsOf(night, resumed)
  const pending = points.values()
  const ends = new Map<string, number>()
  let failed = 0
  const work = async (throwThere: (point: Point) => Promise<Thrown>) => {
    for (const [number, point] of pending) {
      const thrown = await throwThere(point)
      const complaints = complaintsOf(thrown, point.from === "resumed" ? resumed : night)
      if (complaints.length > 0) failed += 1
      ends.set(thrown.verdict, (ends.get(thrown.verdict) ?? 0) + 1)
      const what = complaints.join("; ") || `its own task only, ${thrown.verdict}`
      if (complaints.length > 0 || values.verbose)
        console.log(`${number} ${point.id} from ${point.from}: ${what}`)
    }
  }
  const processes = Number(values.processes)
  const workers = processes > 1 ? Array.from({ length: processes }, openWorker) : []
  await Promise.all(workers.length === 0 ? [work(throwAt)] : workers.map((one) => work(one.throwThere)))
  for (const worker of workers) worker.close()
  const all = new Set([...night.called.keys(), ...resumed.called.keys()])
  const early = [...new Set([...night.early, ...resumed.early])].filter((id) => !all.has(id)).toSorted()
  if (values.verbose) console.log(`called only before the plan: ${early.join(", ") || "none"}`)
  const ended = [...ends].map(([verdict, count]) => `${count} ${verdict}`).join(", ")
  if (values.verbose) console.log(`how their tasks ended: ${ended}`)
  const functions = new Set(points.map(([, { id }]) => id)).size
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0)
  const memory = (process.resourceUsage().maxRSS / 1024).toFixed(0)
  console.log(
    `${functions} of ${all.size} functions threw, at ${points.length} moments; ${failed} cost more than their task; ` +
      `${seconds} s, ${memory} MB`,
  )
  if (values.json) console.log(figuresLine([{ of: "functions that throw", tried: points.length, failed }]))
  process.exit(failed === 0 ? 0 : 1)
}

if (!values.worker) await campaign()
else
  process.on("message", async (point: Point) => {
    process.send?.(await throwAt(point))
  })
