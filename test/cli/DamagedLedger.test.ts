/**
 * A ledger that is damaged, or lost beside what was landed, as the commands meet it: named with what to do, never a
 * defect, never replaced.
 */
import { cpSync, existsSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { join } from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import { leftoversCheck, runTimesCheck } from "../../src/cli/commands/Doctor.ts"
import { toolVersion } from "../../src/cli/Failures.ts"
import { foldHeaders } from "../../src/ledger/FoldRun.ts"
import type { Ended } from "../harness/CommandsHere.ts"
import { startHere } from "../harness/ProgramHere.ts"
import { sharedFolder } from "../harness/Folder.ts"
import { anId } from "../harness/Id.ts"
import { started } from "../report/Samples.ts"

const root = sharedFolder()
const template = join(root, "template")
const output = join(root, "output")
const job = join(root, "small.yaml")

const nightjar = async (folder: string, ...args: ReadonlyArray<string>): Promise<Ended> => {
  const { code, stdout, stderr } = await startHere([...args, "--output", folder]).ended
  return { code: code ?? -1, stdout, stderr: stderr.trimEnd() }
}

beforeAll(async () => {
  writeFileSync(
    job,
    `name: small
service: { sandbox: { seed: 3, speed: 2000 } }
engines: [sandbox-bank:website]
record_schemas: []
customers:
  - { id: k-1, parameters: { username: ok+queue-1+run-1+records-1, password: a-password } }
`,
  )
  expect((await nightjar(template, "run", job)).code).toBe(0)
}, 120_000)

/** A copy of the folder in which the ledger was changed. */
const damaged = (damage: (path: string) => void): string => {
  rmSync(output, { recursive: true, force: true })
  cpSync(template, output, { recursive: true })
  damage(join(output, "ledger.sqlite"))
  return output
}
/** The same by SQL. */
const changed = (...statements: ReadonlyArray<string>): string =>
  damaged((path) => {
    const database = new DatabaseSync(path)
    for (const sql of [...statements, "PRAGMA wal_checkpoint(TRUNCATE)"]) database.exec(sql)
    database.close()
  })

/** Each of these commands is refused like this. */
const allRefused = async (folder: string, asked: ReadonlyArray<ReadonlyArray<string>>, stderr: unknown) => {
  const ended = { code: 2, stdout: "", stderr }
  for (const command of asked) expect([command, await nightjar(folder, ...command)]).toEqual([command, ended])
}
const commands = [["run", job], ["status"], ["runs"], ["repair"]] as const

const begunAs = (run_id: string, at: number) => ({
  seq: at,
  at,
  fact: { ...started, run_id: anId(run_id), service: "https://service.example" },
})

describe("a ledger that is", () => {
  it.each([
    ["no database any more", commands, () => damaged((path) => writeFileSync(path, Buffer.alloc(8_192, 7)))],
    [
      "changed in one fact",
      commands.slice(0, 1),
      () => changed("UPDATE facts SET at = at + 1 WHERE tag = 'RunStarted'"),
    ],
  ])("%s is named, with what to do", async (_, asked, damage) => {
    const folder = damage()
    await allRefused(
      folder,
      asked,
      expect.stringMatching(
        /^nightjar: the ledger is damaged: .*\nNothing more was started.*Restore a copy of ledger/,
      ),
    )
    const verified = await nightjar(folder, "verify", "--json")
    expect([verified.code, JSON.parse(verified.stdout)]).toMatchObject([
      3,
      [
        {
          where: "ledger.sqlite",
          id: "facts-damaged",
          next: "Restore a copy of it, with `ledger-archive/` if there is one: it exists nowhere else.",
        },
      ],
    ])
    expect(await nightjar(folder, "doctor")).toMatchObject({
      code: 2,
      stdout: expect.stringMatching(/failed +ledger/),
    })
  })

  it("missing beside landed bodies is refused by every command, and no new one is created", async () => {
    const folder = damaged((path) => rmSync(path))
    const stderr = expect.stringContaining(
      "is missing, but the folder contains landing, tables, nightjar.duckdb",
    )
    await allRefused(folder, [...commands, ["credentials", "list"], ["verify"], ["plan", job]], stderr)
    expect(await nightjar(folder, "doctor")).toMatchObject({
      code: 2,
      stdout: expect.stringContaining("[ledger-absent]"),
    })
    expect(existsSync(join(folder, "ledger.sqlite"))).toBe(false)
    cpSync(join(template, "ledger.sqlite"), join(folder, "ledger.sqlite"))
    expect((await nightjar(folder, "verify")).stdout).toBe("Files, ledger and tables agree.\n")
  })
})

describe("a ledger that is older than its folder", () => {
  const newer = join(root, "newer.sqlite")

  const lived = join(root, "two-nights")
  beforeAll(async () => {
    cpSync(template, lived, { recursive: true })
    expect((await nightjar(lived, "run", job, "--new")).code).toBe(0)
    renameSync(join(lived, "ledger.sqlite"), newer)
    for (const name of readdirSync(lived).filter((one) => one.startsWith("ledger.sqlite-")))
      rmSync(join(lived, name))
  }, 120_000)
  /** The ledger of one night, beside what two nights left; returns the name of the second one. */
  const older = () => {
    rmSync(output, { recursive: true, force: true })
    cpSync(lived, output, { recursive: true })
    cpSync(join(template, "ledger.sqlite"), join(output, "ledger.sqlite"))
    return readdirSync(join(output, "landing")).toSorted().at(-1) ?? ""
  }
  const verified = async () =>
    JSON.parse((await nightjar(output, "verify", "--json")).stdout).map(
      ({ id, where }: Readonly<Record<"id" | "where", string>>) => [id, where],
    )

  it("starts nothing until what it does not know is gone [ledger older] [ledger older rebuild]", async () => {
    const second = older()
    const refused = async () => {
      await allRefused(
        output,
        [
          ["run", job, "--new"],
          ["plan", job],
        ],
        expect.stringMatching(`older than the folder: it does not know ${second} \\[ledger-older`),
      )
    }
    await refused()
    expect(await verified()).toEqual([["run-not-in-ledger", second]])
    expect(await nightjar(output, "rebuild")).toMatchObject({
      code: 3,
      stdout: expect.stringContaining(`${second} keeps its tables: the ledger does not know it`),
    })
    renameSync(join(output, "landing", second), join(root, second))
    // Its rows are still in the tables.
    await refused()
    expect(await nightjar(output, "rebuild")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`${second} is taken out of the tables`),
    })
    expect(await verified()).toEqual([])
    expect((await nightjar(output, "run", job, "--new")).code).toBe(0)
    expect(await verified()).toEqual([])
  })

  it("whose newer one is back starts again, unless a run landed that it does not know either [ledger older landed]", async () => {
    older()
    cpSync(newer, join(output, "ledger.sqlite"))
    cpSync(join(template, "landing"), join(output, "landing"), { recursive: true })
    const [first = ""] = readdirSync(join(template, "landing"))
    const other = first.replace("small", "other")
    renameSync(join(output, "landing", first), join(output, "landing", other))
    cpSync(join(template, "landing"), join(output, "landing"), { recursive: true })
    expect(await verified()).toEqual([["run-not-in-ledger", other]])
    expect((await nightjar(output, "run", job, "--new")).code).toBe(2)
    // Whatever else somebody puts there is no run.
    renameSync(join(output, "landing", other), join(output, "landing", `${other}.aside`))
    expect((await nightjar(output, "run", job, "--new")).code).toBe(0)
  })
})

it("a ledger of a newer version is refused, and both versions are named", async () => {
  const folder = changed(
    "UPDATE facts SET chain = NULL",
    `UPDATE facts SET body = json_set(body, '$.tool_version', '9.1.0') WHERE tag = 'RunStarted'`,
    "PRAGMA user_version = 4",
  )
  await allRefused(
    folder,
    [["runs"], ["status"], ["run", job]],
    `nightjar: the ledger was written by a newer nightjar than this one, ${toolVersion}: the ledger has format 4; ` +
      "the newest run in it was written by version 9.1.0 [ledger-newer]\nNothing was started, and the ledger " +
      "was not changed. Use that version, or a newer one, with this output folder.",
  )
})

describe("`doctor` over a folder", () => {
  const lineOf = async (folder: string, what: string) => {
    const { stdout } = await nightjar(folder, "doctor", "--json")
    const lines: ReadonlyArray<{ readonly what: string }> = JSON.parse(stdout)
    return lines.find((line) => line.what === what)
  }

  it("says for how many nights its disk is enough, and that nothing is left at the service", async () => {
    expect(await lineOf(template, "free space")).toMatchObject({
      says: expect.stringMatching(/^\d+\.\d GiB free, enough for (?:\d+|more than 1000) nights$/),
    })
    expect(await lineOf(template, "left at the service")).toMatchObject({ verdict: "ok", says: "nothing" })
  })

  it("names a run that was cut off and has left something at the service, and a damaged marker", async () => {
    const cutOff = changed("DELETE FROM facts WHERE seq >= (SELECT seq FROM facts WHERE tag = 'RunEnded')")
    writeFileSync(join(cutOff, ".nightjar"), "x")
    expect(await lineOf(cutOff, "left at the service")).toMatchObject({
      verdict: "warning",
      says: expect.stringMatching(/^1 run left something at the service; the oldest is small\.\S+$/),
      id: "runs-left-open",
    })
    expect(await lineOf(cutOff, "files and tables")).toMatchObject({
      verdict: "failed",
      says: expect.stringContaining(".nightjar: the marker file was changed"),
      id: "folder-disagrees",
    })
  })

  it("names executions that are kept, because records of them may be missing", () => {
    const ended = (run_id: string, kept: number) => {
      const end = { _tag: "RunEnded", run_id: anId(run_id), exit_code: 0, leftovers: false, kept } as const
      const outcome = { _tag: "OutcomePublished", run_id: anId(run_id) } as const
      return [begunAs(run_id, 1), ...[end, outcome].map((fact) => ({ seq: 1, at: 1, fact }))]
    }
    const headers = foldHeaders([...ended("small.1", 2), ...ended("small.2", 1), ...ended("small.3", 0)])
    expect(leftoversCheck(headers)).toMatchObject({
      verdict: "warning",
      says: expect.stringMatching(/^3 executions kept at the service, .+; the newest in small\.2$/),
      id: "runs-keep-executions",
    })
  })

  it("names the latest run that began after now, by this machine's clock", () => {
    const headers = foldHeaders([begunAs("small.1", 9e9), begunAs("small.2", 8e9), begunAs("small.3", 1)])
    const check = (now: number) => runTimesCheck(headers, now)
    expect(check(1e9)).toMatchObject({
      verdict: "warning",
      says: "2 runs began in the future, by this machine's clock; the latest is small.1",
      id: "runs-ahead",
    })
    expect(check(9e9)).toBeUndefined()
  })
})
