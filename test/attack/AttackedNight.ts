/**
 * One night in which many sessions answer with bodies made to fill a memory, and ten customers' with what they
 * have: the pipeline as a process of its own against a real server, its peak memory as the system counts it, and
 * whether the attack cost anybody else anything.
 */
import { join } from "node:path"
import { command } from "../acceptance/BuiltCommand.ts"
import { ended, FakeService, profileOf, resultsBody, working } from "../acceptance/FakeService.ts"
import { jobText, login, Workplace } from "../acceptance/Nightjar.ts"
import { startMeasured, type MeasuredEnd } from "../bench/MeasuredProcess.ts"
import { attackBody } from "./AttackBodies.ts"

export interface Attack {
  readonly attackers: number
  readonly megabytes: number
  readonly seed: number
}

/** What a night may take of memory, whatever it is answered with. */
export const peakMbMax = 1_024

/** A night that is not over by then is told to end, and counts as killed. */
const lifeMsMax = 3_600_000

const innocents = Array.from({ length: 10 }, (_, index) => `innocent-${index}`)
const recordsEach = 40
const family = "customer_information:user_profile@customer_information"

/** Records of somebody else's night: enough that a half of them is told from all. */
const recordsOf = (id: string) =>
  Array.from({ length: recordsEach }, (_, n) => profileOf(id, { name: `${id} ${n}` }))

const rest = `execution: { max_wait: 30 minutes }
retry: { max_attempts: 2, base: 100 millis, max: 200 millis }
flow_results: { wait_final: 2 seconds }`

/** Attackers and innocents in turn, as a job may name them. */
const customersOf = (attackers: number): ReadonlyArray<string> => {
  const every = Math.max(1, Math.floor(attackers / innocents.length))
  const names = Array.from({ length: attackers }, (_, n) => `attacker-${n}`)
  const mixed = innocents.flatMap((id, n) => [...names.slice(n * every, (n + 1) * every), id])
  return [...mixed, ...names.slice(innocents.length * every)]
}

const script = (fake: FakeService, { attackers, megabytes, seed }: Attack): void => {
  for (const id of innocents)
    fake.scripts.set(id, {
      state: (execution) =>
        execution.looks === 1
          ? working(execution)
          : ended(execution, "COMPLETED", "COMPLETED", { products_count: { [family]: recordsEach } }),
      results: () => resultsBody(recordsOf(id)),
    })
  for (let n = 0; n < attackers; n++) {
    const { bytes, isPromised, pieces } = attackBody(seed + n, megabytes)
    const headers = isPromised ? { "content-length": String(bytes) } : {}
    fake.scripts.set(`attacker-${n}`, {
      // More than any body holds: whatever of it can be read is not everything, and must not be deleted.
      state: (execution) =>
        ended(execution, "COMPLETED", "COMPLETED", { products_count: { "p:s@p": 1_000_000_000 } }),
      results: () => ({ status: 200, headers, pieces }),
      attachment: () => ({ status: 404 }),
    })
  }
}

export interface AttackEnd {
  readonly elapsedMs: number
  readonly peakMb: number
  readonly reasons: Readonly<Record<string, number>>
  readonly innocentsWhole: number
  readonly attackersDeleted: number
  readonly complaints: ReadonlyArray<string>
}

/** How the attackers' tasks ended, and which innocents are in the tables with all that they have. */
const readTables = async (place: Workplace) => {
  const ends = await place.rows(
    "SELECT reason, count(*)::INTEGER AS n FROM ops.tasks WHERE customer_id LIKE 'attacker-%' GROUP BY 1 ORDER BY 1",
  )
  const rows = await place.rows(
    "SELECT p.customer_id AS id, name FROM nights.customer_profiles p JOIN ops.tasks t USING (run_id, task_id) " +
      "WHERE t.outcome = 'succeeded' ORDER BY 1, 2",
  )
  const names = Map.groupBy(rows, ({ id }) => String(id))
  const whole = innocents.filter(
    (id) =>
      JSON.stringify(names.get(id)?.map(({ name }) => name)) ===
      JSON.stringify(
        recordsOf(id)
          .map(({ name }) => name)
          .toSorted(),
      ),
  )
  return { reasons: Object.fromEntries(ends.map(({ reason, n }) => [String(reason), Number(n)])), whole }
}

const judge = async (
  attack: Attack,
  fake: FakeService,
  place: Workplace,
  night: MeasuredEnd,
): Promise<AttackEnd> => {
  const peakMb = Math.round(night.usage.reduce((sum, one) => sum + one.peak_mb, 0))
  const complaints = [...fake.breaches]
  const { reasons, whole } = await readTables(place).catch((cause: unknown) => {
    complaints.push(`nothing is published: ${String(cause)}; ${night.stderr.slice(-600)}`)
    return { reasons: {}, whole: [] }
  })
  const removed = fake.removed.map(({ customer_id }) => customer_id)
  const attackersDeleted = removed.filter((id) => id.startsWith("attacker-")).length
  const again = [...Map.groupBy(fake.starts, ({ customer_id }) => customer_id).values()].filter(
    (starts) => starts.length > 1,
  )
  if (night.usage.length === 0) complaints.push(`the process was killed: ${night.stderr.slice(-500)}`)
  if (night.code !== 3 && night.code !== 4)
    complaints.push(`exit code ${night.code}: ${night.stderr.slice(-500)}`)
  if (whole.length < innocents.length)
    complaints.push(`${whole.length} of ${innocents.length} innocents are published`)
  if (attackersDeleted > 0)
    complaints.push(`${attackersDeleted} executions with bodies that hold too little were deleted`)
  if (again.length > 0) complaints.push(`${again.length} customers were started more than once`)
  if (peakMb > peakMbMax) complaints.push(`a peak of ${peakMb} MB, and ${peakMbMax} are allowed`)
  const told = Object.values(reasons).reduce((sum, n) => sum + n, 0)
  if (told < attack.attackers) complaints.push(`${told} of ${attack.attackers} attacked tasks are told`)
  return {
    elapsedMs: night.elapsedMs,
    peakMb,
    reasons,
    innocentsWhole: whole.length,
    attackersDeleted,
    complaints,
  }
}

export const attackNight = async (attack: Attack): Promise<AttackEnd> => {
  const fake = await FakeService.listen()
  const place = new Workplace()
  try {
    script(fake, attack)
    const lines = customersOf(attack.attackers).map((id) => login(id))
    const customers = `customers:\n${lines.join("\n")}\n`
    const job = join(
      place.folder,
      place.write("job.yaml", jobText(fake, { name: "attacked", customers, rest })),
    )
    const run = [command, "run", job, "--output", place.output, "--no-progress"]
    const running = startMeasured(run, join(place.folder, "night.usage"), place.environment)
    const timer = setTimeout(running.stop, lifeMsMax)
    const night = await running.ended
    clearTimeout(timer)
    return await judge(attack, fake, place, night)
  } finally {
    await fake.close()
    place.remove()
  }
}
