/**
 * A night that goes wrong, as the engineer on call lives it: the real command against the embedded service, what each
 * command prints, whether everything that tells about a run agrees, and the suggested commands, copied as they stand.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { ExecutionSeen } from "../../../src/sandbox/admin/Truth.ts"
import { readTruth } from "../../faults/ServiceProcess.ts"
import { Workplace } from "../Nightjar.ts"
import type { Ended } from "../../harness/ProgramHere.ts"

/** A line of a customers file: who, the words for the embedded service, and the engine. */
export interface Customer {
  readonly id: string
  readonly words: string
  readonly engine?: string
  readonly records?: number
}

const bank = "sandbox-bank:website"

/** `HH:MM` in UTC, so many minutes from now. */
const clock = (minutes: number): string => new Date(Date.now() + minutes * 60_000).toISOString().slice(11, 16)

/** The words of a login name its customer too: no two customers share a login. */
const customersFile = (customers: ReadonlyArray<Customer>): string =>
  [
    "customer_id,engine_reference,username,password",
    ...customers.map(({ id, words, engine, records }) => {
      const all = records === undefined ? words : `${words}+records-${records}`
      return `${id},${engine ?? bank},${all}+of-${id},env:LOGIN_PASSWORD`
    }),
    "",
  ].join("\n")

interface Scene {
  readonly customers: ReadonlyArray<Customer>
  /** More lines of the job. */
  readonly job?: ReadonlyArray<string>
  /** Lines of the file of faults. */
  readonly faults?: ReadonlyArray<string>
}

interface Task {
  readonly customer_id: string
  readonly outcome: string
  readonly reason: string
  readonly who_acts: string
  readonly message: string | null
}
interface Status {
  readonly run_id: string
  readonly exit_code?: number
  readonly tasks: ReadonlyArray<Task>
}

/** What a person would copy from a summary: the command on its own line, or the one that is due once people acted. */
const suggested = (text: string): string | undefined =>
  (/^ {2}(nightjar .+)$/m.exec(text) ?? /(?:After that,|is right,) `(nightjar [^`]+)`/.exec(text))?.[1]

/** The words of a command as a shell reads them; single quotes are all that is used. */
const wordsOf = (command: string): ReadonlyArray<string> =>
  [...command.matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => quoted ?? word)

/** Somebody else's run of the same customer has another external id. */
const isOurs = ({ external_execution_id }: Pick<ExecutionSeen, "external_execution_id">): boolean =>
  external_execution_id?.startsWith("nj-") === true

export class BadNight {
  readonly place = new Workplace(false)
  readonly told: Array<string> = []

  constructor({ customers, job = [], faults = [] }: Scene) {
    const lines = [
      "name: night",
      // Slow enough that no night is over before its commands are, on a busy machine too.
      "service: { sandbox: { seed: 11, speed: 60, faults: faults.yaml } }",
      "timezone: UTC",
      // Its commands run in it, whatever the hour.
      `night: { starts: "${clock(-60)}", until: "${clock(1_300)}" }`,
      ...job,
      `engines: [{ reference: "${bank}", features: [accounts_read, cards_read, customer_information_read] }]`,
      "record_schemas: [accounts, cards]",
      "customers: [{ from: customers.csv, references: [password] }]",
      "",
    ]
    this.place.write("job.yaml", lines.join("\n"))
    this.customers(customers)
    this.faults(faults)
  }

  customers(customers: ReadonlyArray<Customer>): void {
    this.place.write("customers.csv", customersFile(customers))
  }

  faults(lines: ReadonlyArray<string>): void {
    this.place.write("faults.yaml", `seed: 5\nfaults: [${lines.join(", ")}]\n`)
  }

  /** Lives a command and records it. */
  async do(command: string): Promise<Ended> {
    const [, ...args] = wordsOf(command)
    const ended = await this.place.nightjar(...args, "--no-progress")
    const { code, stdout, stderr } = ended
    // How often the service was seen to be silent depends on how busy the machine is.
    const said = stderr.replaceAll(/^(the service |engine |listEngines: ).*\n/gm, "")
    this.told.push(this.timeless(`$ ${command}\n${stdout}${said}exit code ${code}\n`))
    return ended
  }

  /** Without dates, durations, fingerprints and the folder of this machine. */
  timeless(text: string): string {
    return text
      .replaceAll(this.place.folder, "")
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIMESTAMP")
      .replaceAll(/\d{4}-\d\d-\d\d/g, "DATE")
      .replaceAll(/[0-9a-f]{16,64}/g, "FINGERPRINT")
      .replaceAll(/took [^,\n]+/g, "took SPAN")
      .replaceAll(/\d\d:\d\d(:\d\d)?/g, "TIME")
  }

  /**
   * Follows the suggested commands until there is none, or until what is left waits for people who have done what
   * they can: that is `act`.
   */
  async follow(from: Ended, act?: () => Promise<void> | void, stepsMax = 6): Promise<Ended> {
    let last = from
    let hasActed = act === undefined
    for (let step = 0; step < stepsMax; step += 1) {
      const command = suggested(last.stdout)
      if (command === undefined) return last
      if (last.stdout.includes("People have to act before")) {
        if (hasActed) return last
        await act?.()
        hasActed = true
      }
      last = await this.do(command)
    }
    throw new Error(`no end after ${stepsMax} suggested commands: ${this.told.join("\n")}`)
  }

  /** As the summary says: looks for the rejected login of this customer, and releases it. */
  async release(customer_id: string): Promise<void> {
    // Not recorded: the logins stand in the order in which they were rejected.
    const rows = (await this.place.json("credentials", "list")) as ReadonlyArray<Record<string, string>>
    const row = rows.find((one) => one["customer_id"] === customer_id)
    await this.do(`nightjar credentials release ${row?.["fingerprint"]?.slice(0, 16)}`)
  }

  /** The service's support says that it never created an execution for the logins whose answer nobody read. */
  async settle(): Promise<void> {
    const rows = (await this.place.json("credentials", "list", "--unproven")) as ReadonlyArray<
      Record<string, string>
    >
    const lines = rows.map((row) => `${row["external_execution_id"]},never_created`)
    this.place.write("said.csv", ["external_execution_id,execution_id", ...lines, ""].join("\n"))
    await this.do("nightjar credentials settle said.csv")
  }

  async status(...run: ReadonlyArray<string>): Promise<Status> {
    return (await this.place.json("status", ...run)) as Status
  }

  /** Everything that tells about the run that has just ended, compared with each other. */
  async disagreements(ended: Ended): Promise<ReadonlyArray<string>> {
    const [status, shown, runs] = await Promise.all([
      this.status(),
      this.place.nightjar("status"),
      this.place.json("runs") as Promise<ReadonlyArray<Record<string, unknown>>>,
    ])
    const { run_id, tasks } = status
    const complaints: Array<string> = []
    const agree = (what: string, a: unknown, b: unknown) => {
      const [one, other] = [JSON.stringify(a), JSON.stringify(b)]
      if (one !== other) complaints.push(`${what}: ${one} is not ${other}`)
    }
    const file = (name: string) => readFileSync(join(this.place.output, "runs", run_id, name), "utf8")
    const { tasks: _, ...summary } = status
    const { tasks: __, ...written } = JSON.parse(file("summary.json")) as Status
    const now = { running: false, interrupted: null, also_interrupted: [] }
    agree("summary.json and `status --json`", { ...written, ...now }, summary)
    agree("`status` and the summary", shown.stdout.endsWith(ended.stdout), true)
    const newest = runs.find((one) => one["run_id"] === run_id)
    agree("`runs` and `status`", newest?.["exit_code"], status.exit_code)
    const open = tasks.filter(({ outcome }) => outcome !== "succeeded")
    agree(
      "worklist.csv and `status`",
      worklist(file("worklist.csv")).toSorted(),
      open.map((task) => [task.customer_id, task.outcome, task.reason, task.who_acts].join(" ")).toSorted(),
    )
    return complaints
  }

  /** Customers with an execution of ours that is still at the service, and rules that the runs broke. */
  left() {
    const { executions, ruleBreaks } = readTruth(join(this.place.output, "sandbox.ndjson"))
    const kept = executions.filter((one) => isOurs(one) && one.deleted_at === undefined)
    return {
      kept: kept.map(({ customer_id }) => customer_id),
      broken: ruleBreaks.map(({ rule, customer_id }) => `${rule} ${customer_id}`),
    }
  }

  /** How many records of each customer the runs of the published version read. */
  async records(): Promise<Readonly<Record<string, number>>> {
    if (!existsSync(join(this.place.output, "nightjar.duckdb"))) return {}
    const records = ["customer_profiles", "accounts", "cards", "other_records"].map(
      (name) => `nights.${name}`,
    )
    const tables = [...records, "ops.rejected_records"]
    const all = tables.map((table) => `SELECT customer_id FROM ${table}`).join(" UNION ALL ")
    const rows = await this.place.rows(
      `SELECT customer_id, count(*)::INT AS n FROM (${all}) GROUP BY 1 ORDER BY 1`,
    )
    return Object.fromEntries(rows.map((row) => [String(row["customer_id"]), Number(row["n"])]))
  }
}

const worklist = (csv: string): ReadonlyArray<string> =>
  csv
    .trimEnd()
    .split("\r\n")
    .slice(1)
    .map((line) => line.split(","))
    .filter(([change]) => change !== "mended")
    .map(([, who_acts, customer, , , outcome, reason]) => [customer, outcome, reason, who_acts].join(" "))

export const recordsOf = (customers: ReadonlyArray<Customer>): Readonly<Record<string, number>> =>
  Object.fromEntries(
    customers
      .flatMap(({ id, records }) => (records === undefined ? [] : [[id, records] as const]))
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  )
