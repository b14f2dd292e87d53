/**
 * A ledger that is damaged, or lost beside what was landed, as the commands meet it: named with what to do, never a
 * defect, never replaced.
 */
import { spawnSync } from "node:child_process"
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { command as main } from "../acceptance/BuiltCommand.ts"

const root = mkdtempSync(join(tmpdir(), "nightjar-damaged-"))
const template = join(root, "template")
const output = join(root, "output")
const job = join(root, "small.yaml")
afterAll(() => rmSync(root, { recursive: true, force: true }))

const nightjar = (folder: string, ...args: ReadonlyArray<string>) => {
  const argv = [main, ...args, "--output", folder]
  const { status, stdout, stderr } = spawnSync(process.execPath, argv, { cwd: root, encoding: "utf8" })
  return { status, stdout, stderr }
}

beforeAll(() => {
  writeFileSync(
    job,
    `name: small
service: { sandbox: { seed: 3, speed: 2000 } }
engines: [sandbox-bank:website]
customers:
  - { id: k-1, parameters: { username: ok+queue-1+run-1+records-1, password: a-password } }
`,
  )
  expect(nightjar(template, "run", job).status).toBe(0)
}, 120_000)

/** A copy of the folder in which the ledger was changed. */
const damaged = (damage: (path: string) => void): string => {
  rmSync(output, { recursive: true, force: true })
  cpSync(template, output, { recursive: true })
  damage(join(output, "ledger.sqlite"))
  return output
}

const commands = [["run", job], ["status"], ["runs"], ["repair"], ["credentials", "list"]] as const

describe("a ledger that is", () => {
  it.each([
    ["no database any more", (path: string) => writeFileSync(path, Buffer.alloc(8_192, 7))],
    [
      "changed in one fact",
      (path: string) => {
        const database = new DatabaseSync(path)
        database.exec("UPDATE facts SET at = at + 1 WHERE tag = 'RunStarted'")
        database.exec("UPDATE facts SET at = at + 1 WHERE tag = 'CredentialRejected'")
        database.close()
      },
    ],
  ])(
    "%s is named by every command, with what to do",
    (_, damage) => {
      const folder = damaged(damage)
      for (const command of commands.filter(([name]) => name !== "credentials")) {
        const { status, stderr } = nightjar(folder, ...command)
        expect([command[0], status, stderr.includes("a defect in the program")]).toEqual([
          command[0],
          2,
          false,
        ])
        expect(stderr).toMatch(
          /^nightjar: the ledger is damaged: .*\nNothing more was started.*Restore a copy of ledger/,
        )
      }
      const verified = nightjar(folder, "verify", "--json")
      expect([verified.status, JSON.parse(verified.stdout)]).toMatchObject([
        3,
        [
          {
            where: "ledger.sqlite",
            id: "facts-damaged",
            next: "Restore a copy of it, with `ledger-archive/` if there is one: it exists nowhere else.",
          },
        ],
      ])
      const doctor = nightjar(folder, "doctor")
      expect(doctor.status).toBe(2)
      expect(doctor.stdout).toMatch(/failed +ledger/)
    },
    120_000,
  )

  it("missing beside landed bodies is refused by every command, and no new one is created", () => {
    const folder = damaged((path) => rmSync(path))
    for (const command of [...commands, ["verify"], ["plan", job]]) {
      const { status, stderr } = nightjar(folder, ...command)
      expect([command[0], status]).toEqual([command[0], 2])
      expect(stderr).toContain("is missing, but the folder contains landing, tables, nightjar.duckdb")
    }
    const doctor = nightjar(folder, "doctor")
    expect([doctor.status, existsSync(join(folder, "ledger.sqlite"))]).toEqual([2, false])
    expect(doctor.stdout).toContain("[ledger-absent]")
    cpSync(join(template, "ledger.sqlite"), join(folder, "ledger.sqlite"))
    expect(nightjar(folder, "verify").stdout).toBe("Files, ledger and tables agree.\n")
  }, 120_000)

  it("whole, but has a damaged marker, is reported and repaired", () => {
    const folder = damaged((path) => writeFileSync(join(path, "../.nightjar"), "x"))
    expect(nightjar(folder, "doctor").stdout).toMatch(
      /failed +files and tables +\.nightjar: the marker file was changed \[folder-disagrees\]/,
    )
    expect(nightjar(folder, "repair")).toMatchObject({ status: 0, stdout: ".nightjar: written again\n" })
    expect(readFileSync(join(folder, ".nightjar"), "utf8")).toContain("nightjar output folder")
  }, 120_000)
})

describe("a ledger of a newer version", () => {
  const version = nightjar(template, "--version").stdout.trim().replace("nightjar v", "")
  const newest = "the newest run in it was written by version 9.1.0"
  const written = (database: DatabaseSync): void => {
    database.exec("UPDATE facts SET chain = NULL")
    database.exec(
      `UPDATE facts SET body = json_set(body, '$.tool_version', '9.1.0') WHERE tag = 'RunStarted'`,
    )
  }
  const refusal = (detail: string) => ({
    status: 2,
    stdout: "",
    stderr:
      `nightjar: the ledger was written by a newer nightjar than this one, ${version}: ${detail} ` +
      "[ledger-newer]\nNothing was started, and the ledger was not changed. Use that version, or a newer one, " +
      "with this output folder.\n",
  })

  it.each([
    [
      "by its format",
      (database: DatabaseSync) => database.exec("PRAGMA user_version = 4"),
      () => `the ledger has format 4; ${newest}`,
    ],
    [
      "by a fact of a kind that this one does not know",
      (database: DatabaseSync) =>
        database.exec(`UPDATE facts SET body = '{"_tag":"NightPaused"}' WHERE tag = 'OutcomePublished'`),
      (seq: unknown) => `this version cannot read fact ${seq}; ${newest}`,
    ],
    [
      "by a fact with a value that this one does not know",
      (database: DatabaseSync) =>
        database.exec("UPDATE facts SET body = json_set(body, '$.exit_code', 'x') WHERE tag = 'RunEnded'"),
      (seq: unknown) => `this version cannot read fact ${seq}; ${newest}`,
    ],
  ])("is refused %s, and both versions are named", (_, change, detail) => {
    let seq: unknown
    const folder = damaged((path) => {
      const database = new DatabaseSync(path)
      written(database)
      seq = database
        .prepare("SELECT seq FROM facts WHERE tag = ?")
        .get(String(change).includes("OutcomePublished") ? "OutcomePublished" : "RunEnded")?.["seq"]
      change(database)
      database.exec("PRAGMA wal_checkpoint(TRUNCATE)")
      database.close()
    })
    for (const command of [["runs"], ["status"], ["run", job]])
      expect(nightjar(folder, ...command)).toEqual(refusal(detail(seq)))
  })
})

describe("`doctor` over a folder that works", () => {
  const lines = (folder: string) =>
    JSON.parse(nightjar(folder, "doctor", "--json").stdout) as ReadonlyArray<{
      readonly what: string
      readonly says: string
      readonly id?: string
    }>
  const lineOf = (folder: string, what: string) => lines(folder).find((line) => line.what === what)

  it("says for how many nights its disk is enough, and that nothing is left at the service", () => {
    expect(lineOf(template, "free space")?.says).toMatch(
      /^\d+\.\d GiB free, enough for (?:\d+|more than 1000) nights$/,
    )
    expect(lineOf(template, "left at the service")).toMatchObject({ verdict: "ok", says: "nothing" })
  })

  it("names a run that was cut off and has left something at the service", () => {
    const folder = damaged((path) => {
      const database = new DatabaseSync(path)
      database.exec("DELETE FROM facts WHERE seq >= (SELECT seq FROM facts WHERE tag = 'RunEnded')")
      database.close()
    })
    expect(lineOf(folder, "left at the service")).toMatchObject({
      verdict: "warning",
      says: expect.stringMatching(/^1 run left something at the service; the oldest is small\.\S+$/),
      id: "runs-left-open",
    })
  })
})
