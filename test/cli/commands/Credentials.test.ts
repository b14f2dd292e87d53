/** Accounts that are rejected, unproven or held: listed by incident, released, and settled with what support says. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, it } from "vitest"
import { readSettlement } from "../../../src/cli/commands/Credentials.ts"
import { CustomerId } from "../../../src/service/Ids.ts"
import type { Fact } from "../../../src/ledger/Fact.ts"
import { Ledger } from "../../../src/ledger/Ledger.ts"
import { heldAccounts, incidentsText, loginsOf } from "../../../src/report/Logins.ts"
import type { StateAnswer } from "../../../src/client/Service.ts"
import { lost as lostAnswer, scripted, state, working } from "../../task/ScriptedService.ts"
import type { Call, Script } from "../../task/ScriptedService.ts"
import { commandAt, commandHere } from "../../harness/CommandsHere.ts"
import { anId } from "../../harness/Id.ts"
import { sharedFolder } from "../../harness/Folder.ts"
import { aFact, runStarted } from "../../harness/Facts.ts"

const base = sharedFolder()

const run_id = anId("nightly.2026-11-20")
const at = Date.parse("2026-11-20T22:31:00Z")
const engine_reference = anId("es-alpha:website")
const taskOf = (n: number) => ({ run_id, task_id: anId(`${run_id}/c-${n}/es-alpha:website`) })
const keysOf = (n: number) => ({
  account: `account-${n}-of-alpha`,
  identity: [`identity-${n}`],
  password: `password-${n}`,
})
const fingerprintOf = (n: number) => `fingerprint-${n}-of-login`

const started: Fact = runStarted(run_id)
const planned = (n: number): Fact =>
  aFact("TaskPlanned", { ...taskOf(n), customer_id: `c-${n}`, engine_reference })
const lost = (n: number, attempt: number, answer = "502"): ReadonlyArray<Fact> => [
  aFact("StartIntended", {
    ...taskOf(n),
    attempt,
    external_execution_id: `x-${n}-${attempt}`,
    customer_id: `c-${n}`,
    engine_reference,
    fingerprint: fingerprintOf(n),
    login: keysOf(n),
  }),
  {
    _tag: "LoginJudged",
    ...taskOf(n),
    attempt,
    account: keysOf(n).account,
    password: keysOf(n).password,
    fingerprint: fingerprintOf(n),
    verdict: "unproven",
    said: answer,
  },
]
const rejected = (n: number): Fact =>
  aFact("CredentialRejected", {
    ...taskOf(n),
    of_attempt: 1,
    fingerprint: fingerprintOf(n),
    login: keysOf(n),
    customer_id: `c-${n}`,
    engine_reference,
  })

/** As the ledger has it: held by three lost logins. */
const accountOf = (n: number, over: object = {}) => ({
  account: keysOf(n).account,
  identity: keysOf(n).identity,
  former: [],
  rejected: [],
  granted: 0,
  sent: [1, 2, 3].map((attempt) => ({
    ...taskOf(n),
    attempt,
    engine_reference,
    customer_id: CustomerId.make(`c-${n}`),
    external_execution_id: `x-${n}-${attempt}`,
    password: "p",
    at,
    sends: 1,
    answer: "502",
    ...over,
  })),
})

/** Account 1 is held, 2 has one unproven login, 3 was rejected, 4 is held by other answers. */
const facts: ReadonlyArray<Fact> = [
  started,
  ...[1, 2, 3, 4].map(planned),
  ...[1, 2, 3].flatMap((attempt) => lost(1, attempt)),
  ...lost(2, 1),
  rejected(3),
  ...[1, 2, 3].flatMap((attempt) => lost(4, attempt, "no answer")),
]

let folders = 0
const folderOf = async (written: ReadonlyArray<Fact> = facts) => {
  folders += 1
  const output = join(base, `output-${folders}`)
  mkdirSync(output)
  writeFileSync(
    join(output, ".nightjar"),
    "nightjar output folder\nNightjar writes everything else in this folder.\n",
  )
  await Effect.runPromise(
    Effect.gen(function* () {
      yield* TestClock.setTime(at)
      yield* (yield* Ledger).append(written)
    }).pipe(
      Effect.provide(
        Layer.mergeAll(Ledger.layer({ path: join(output, "ledger.sqlite") }), TestClock.layer()),
      ),
    ),
  )
  return output
}
const accountsIn = (output: string) =>
  Effect.runPromise(
    Effect.flatMap(Ledger, (ledger) => ledger.accounts).pipe(
      Effect.provide(Ledger.layer({ path: join(output, "ledger.sqlite"), readOnly: true })),
    ),
  )
/** Of each account: how many of its logins count, and how many more it was granted. */
const strikesIn = async (output: string) =>
  (await accountsIn(output)).map(({ sent, granted }) => `${sent.length}/${granted}`).join(" ")

const credentials = (output: string, ...args: ReadonlyArray<string>) =>
  commandHere("credentials", ...args, "--output", output)

describe("credentials list", () => {
  it("groups accounts by incident, with their state, customers, times and external ids", async () => {
    const { code, stdout } = await credentials(await folderOf(), "list")
    expect([code, stdout]).toMatchInlineSnapshot(`
      [
        0,
        "2 accounts, es-alpha:website, 502, nightly.2026-11-20, 2026-11-20 22:31, 1 held
        login or account  state                customers  at (UTC)             external id  before
        account-1-of-alp  held LOGIN_UNPROVEN  c-1        2026-11-20 22:31:00  x-1-1        no good login
        account-1-of-alp  held LOGIN_UNPROVEN  c-1        2026-11-20 22:31:00  x-1-2        no good login
        account-1-of-alp  held LOGIN_UNPROVEN  c-1        2026-11-20 22:31:00  x-1-3        no good login
        account-2-of-alp  unproven 1 of 3      c-2        2026-11-20 22:31:00  x-2-1        no good login

      1 account, es-alpha:website, BLOCKED_USER, nightly.2026-11-20, 2026-11-20 22:31
        login or account  state     customers  at (UTC)             external id  before
        fingerprint-3-of  rejected  c-3        2026-11-20 22:31:00               no good login

      1 account, es-alpha:website, no answer, nightly.2026-11-20, 2026-11-20 22:31, 1 held
        login or account  state                customers  at (UTC)             external id  before
        account-4-of-alp  held LOGIN_UNPROVEN  c-4        2026-11-20 22:31:00  x-4-1        no good login
        account-4-of-alp  held LOGIN_UNPROVEN  c-4        2026-11-20 22:31:00  x-4-2        no good login
        account-4-of-alp  held LOGIN_UNPROVEN  c-4        2026-11-20 22:31:00  x-4-3        no good login

      An account is held as LOGIN_UNPROVEN after 3 logins in a row that may have failed: another one may lock it. A corrected password is sent once; otherwise nothing is sent until a release.
      \`nightjar credentials release FINGERPRINT\` lets the next run send a login again.
      \`nightjar credentials list --unproven --csv\` is for the service's support.
      ",
      ]
    `)
  })

  it("says of each kind of hold what a person can do, and nothing of a kind that is not there [promise 4 told list]", async () => {
    const second: Fact = {
      ...(rejected(3) as Extract<Fact, { _tag: "CredentialRejected" }>),
      fingerprint: "another-login",
      login: { ...keysOf(3), password: "another" },
    }
    const twice = [started, planned(3), rejected(3), second]
    const heldIn = async (written: ReadonlyArray<Fact>) =>
      (await credentials(await folderOf(written), "list")).stdout
        .split("\n")
        .filter((line) => line.startsWith("An account is held"))
    expect(await heldIn(twice)).toEqual([
      "An account is held after 2 rejected logins in a row: another one may lock it. Until a release nothing is sent, not even a corrected login. Correct it first: a release allows the rejected login itself, too.",
    ])
    expect((await heldIn([...twice, ...facts.slice(1)])).length).toBe(2)
    expect(await heldIn([started, planned(3), rejected(3)])).toEqual([])
  })

  it("tells an open execution from a start without an answer, and from somebody else's [promise 4 told open] [promise 4 told stranger]", async () => {
    const [intended] = lost(1, 1)
    const accepted: Fact = aFact("StartAnswered", { ...taskOf(1), execution_id: "e-1" })
    const shownBy = async (...known: ReadonlyArray<Fact>) => {
      const output = await folderOf([started, planned(1), intended!, ...known])
      const [row] = JSON.parse((await credentials(output, "list", "--json")).stdout)
      const { stdout } = await credentials(output, "list")
      const [incident, , shown] = stdout.split("\n")
      const told = stdout.includes("An open execution counts as")
      return [incident?.split(", ")[2], shown?.trim().split(/ {2,}/)[1], told, row.execution_id]
    }
    // Its id belongs to somebody else's run: it is never read, and support says what became of the start.
    const foreign: Fact = {
      _tag: "AttemptDisowned",
      ...taskOf(1),
      attempt: 1,
      execution_id: anId("e-1"),
    }
    expect(await shownBy(accepted, foreign)).toEqual(["answer awaited", "unproven 1 of 3", false, undefined])
    const [, unread] = lost(1, 1, "NOT_OURS")
    const output = await folderOf([started, planned(1), intended!, accepted, foreign, unread!])
    const { stdout } = await credentials(output, "list")
    expect(stdout.split("\n").filter((line) => line.includes("NOT_OURS"))).toEqual([
      "1 account, es-alpha:website, NOT_OURS, nightly.2026-11-20, 2026-11-20 22:31",
      expect.stringMatching(/^NOT_OURS: .* which no run reads\. .*`nightjar credentials settle`/),
    ])
    const answers = join(output, "answers.csv")
    writeFileSync(answers, "external_execution_id,execution_id\nx-1-1,never_created\n")
    expect((await credentials(output, "settle", answers)).code).toBe(0)
    expect([await shownBy(), await shownBy(accepted)]).toEqual([
      ["answer awaited", "unproven 1 of 3", false, undefined],
      ["execution open", "open, counts as 1 of 3", true, "e-1"],
    ])
  })

  it("prints what is unproven as CSV that no spreadsheet takes for a formula", async () => {
    const output = await folderOf([started, planned(2), ...lost(2, 1, "=1+1")])
    const { stdout } = await credentials(output, "list", "--unproven", "--csv")
    expect(stdout).toBe(
      "account,customers,engine_reference,external_execution_id,sent_at,answer,execution_id\r\n" +
        `${keysOf(2).account},c-2,es-alpha:website,x-2-1,2026-11-20T22:31:00.000Z,'=1+1,\r\n`,
    )
    expect((await credentials(output, "list", "--csv")).code).toBe(2)
  })

  it("is a few lines however many accounts an incident has, at any width", () => {
    const held = Array.from({ length: 5_000 }, (_, n) => accountOf(n, { at: at + n }))
    const rows = loginsOf(held, () => undefined)
    expect(heldAccounts(rows, {}).length).toBe(5_000)
    for (const width of [60, 200, Infinity]) {
      const lines = incidentsText(rows, width).join("\n").split("\n")
      expect(lines.length).toBeLessThan(40)
      expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(Math.min(width, 200))
    }
    expect(incidentsText(rows, 60)[0]).toBe(
      "5,000 accounts, es-alpha:website, 502, nightly.2026-11-20,\n  2026-11-20 22:31, 5,000 held",
    )
  })
})

describe("credentials release", () => {
  it("of a fingerprint or an account: nothing counts any more", async () => {
    const output = await folderOf()
    const { code, stdout } = await credentials(output, "release", fingerprintOf(1), "account-4", "--json")
    expect([code, JSON.parse(stdout)]).toEqual([0, [fingerprintOf(1), fingerprintOf(4)]])
    expect(await strikesIn(output)).toBe("0/0 1/0 0/0 0/0")
  })

  it("of an account lets the login that was rejected be sent again, as of its fingerprint", async () => {
    const output = await folderOf()
    const rejections = async () => (await accountsIn(output)).flatMap((one) => one.rejected).length
    const before = await rejections()
    expect((await credentials(output, "release", keysOf(3).account)).stdout).toMatch(/^1 login released/)
    expect([before - (await rejections()), await credentials(output, "release", keysOf(3).account)]).toEqual([
      1,
      expect.objectContaining({ code: 2 }),
    ])
  })

  it("of many says how many, asks for --yes, and gives each account that is held one login", async () => {
    const output = await folderOf()
    const before = await accountsIn(output)
    const many = ["release", "--unproven", "--because", "an outage"]
    expect(await credentials(output, ...many)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("it would allow one login each for 2 held accounts"),
    })
    expect((await credentials(output, ...many, "--dry-run")).stdout).toBe(
      "2 held accounts would be released, for one login each.\n",
    )
    expect((await credentials(output, "release", "--unproven", "--yes")).code).toBe(2)
    expect((await credentials(output, "release", "account-1", "--answer", "502")).code).toBe(2)
    expect(await accountsIn(output)).toEqual(before)
    expect((await credentials(output, ...many, "--answer", "502", "--yes")).stdout).toBe(
      "1 held account released for the next run, one login each.\n",
    )
    expect(await strikesIn(output)).toBe("3/1 1/0 0/0 3/0")
    const again = await credentials(output, ...many, "--yes", "--from", "2026-11-20 22:31", "--json")
    expect(JSON.parse(again.stdout)).toEqual([keysOf(4).account])
  })

  it("chooses by source, answer, time, run and the reason of a rejection", () => {
    const rejection = { run_id, engine_reference, fingerprint: "f", password: "q", at, counts: true }
    const accounts = [
      accountOf(1),
      accountOf(2, { engine_reference: anId("es-beta:website") }),
      accountOf(3, { answer: "500" }),
      accountOf(4, { at: at + 3_600_000 }),
      accountOf(5, { run_id: anId("other.2026-11-20") }),
      { ...accountOf(6), rejected: [{ ...rejection, reason: "BLOCKED_USER" }] },
    ]
    const rows = loginsOf(accounts, () => undefined)
    const later = new Date(at + 1).toISOString()
    const chosen = [
      heldAccounts(rows, { source: "es-beta" }),
      heldAccounts(rows, { source: "es-beta:website" }),
      heldAccounts(rows, { answer: "500" }),
      heldAccounts(rows, { from: later }),
      heldAccounts(rows, { to: later, answer: "502", source: "es-alpha", run: run_id }),
      heldAccounts(rows, { run: "other.2026-11-20" }),
      heldAccounts(rows, { reason: "BLOCKED_USER" }),
    ]
    const numbers = [[2], [2], [3], [4], [1, 6], [5], [6]]
    expect(chosen).toEqual(numbers.map((all) => all.map((n) => keysOf(n).account)))
  })

  it("counts over accounts that one login opens: one login is allowed, not one for each", async () => {
    const of = (account: string, identity: ReadonlyArray<string>, fact: Fact): Fact => {
      const { password } = keysOf(1)
      if (fact._tag === "StartIntended") return { ...fact, login: { account, identity, password } }
      return fact._tag === "LoginJudged" ? { ...fact, account } : fact
    }
    const wide = (attempt: number) => lost(1, attempt).map((fact) => of("wide", ["i", "j"], fact))
    const narrow = (attempt: number) => lost(1, attempt).map((fact) => of("narrow", ["i"], fact))
    const both = [started, planned(1), ...wide(1), ...narrow(2), ...wide(3)]
    const output = await folderOf(both)
    expect(await strikesIn(output)).toBe("1/0 2/0")
    const yes = ["--because", "an outage", "--yes"]
    expect((await credentials(output, "release", "--unproven", ...yes)).stdout).toMatch(/^2 held accounts/)
    const allowed = await folderOf([
      ...both,
      { _tag: "CredentialReleased", account: "wide", logins: 1 },
      { _tag: "CredentialReleased", account: "narrow", logins: 1 },
      ...narrow(4),
    ])
    expect(await strikesIn(allowed)).toBe("2/0 2/0")
    const all = await folderOf([...both, { _tag: "CredentialReleased", account: "wide" }])
    expect(await strikesIn(all)).toBe("0/0 0/0")
  })
})

describe("credentials settle", () => {
  const fileOf = (text: string) => {
    const path = join(base, "settled.csv")
    writeFileSync(path, text)
    return path
  }
  const header = "external_execution_id,execution_id\n"

  it("takes off exactly the strikes of logins that were never created", async () => {
    const output = await folderOf()
    const { stdout } = await credentials(output, "list", "--unproven", "--csv")
    const filled = fileOf(`\ufeff${stdout.replace(/(x-1-[12],.*,)\r/g, "$1never_created\r")}`)
    expect((await credentials(output, "settle", filled, "--dry-run")).stdout).toBe(
      "This would be settled:\n  2 logins that the service never created\n",
    )
    expect(await strikesIn(output)).toMatch(/^3\/0 /)
    expect((await credentials(output, "settle", filled, "--json")).stdout).toBe(
      `${JSON.stringify(
        ["x-1-1", "x-1-2"].map((external_execution_id) => ({
          external_execution_id,
          became: "never_created",
        })),
        null,
        2,
      )}\n`,
    )
    expect(await strikesIn(output)).toBe("1/0 1/0 0/0 3/0")
  })

  it("takes off start and probe if neither was created [promise 4 never created]", async () => {
    const probe = lost(1, 2).map((fact) => (fact._tag === "StartIntended" ? { ...fact, probe: true } : fact))
    const output = await folderOf([...facts, ...probe])
    expect((await credentials(output, "settle", fileOf(`${header}x-1-2,never_created\n`))).code).toBe(0)
    expect((await accountsIn(output))[0]?.sent.map(({ attempt, sends }) => [attempt, sends])).toEqual([
      [1, 1],
      [3, 1],
    ])
  })

  it("takes logins in the order in which they were sent, whatever the order of the rows [promise 4 settle order]", async () => {
    const known = (await accountsIn(await folderOf())).map((account) => ({
      ...account,
      sent: account.sent.map((login) => ({ ...login, at: login.at + login.attempt })),
    }))
    const { named } = readSettlement(`${header}x-1-2,e-2\nx-1-3,e-3\nx-1-1,e-1\n`, known, () => undefined)
    expect(named.map(({ execution_id }) => execution_id)).toEqual(["e-1", "e-2", "e-3"])
  })

  it.each([
    ["an external id that is not known", "x-1-1,never_created\nx-9,never_created\n", "line 3: no login"],
    ["a row that is there twice", "x-1-1,never_created\nx-1-1,never_created\n", "line 3: the same as line 2"],
    ["rows that contradict each other", "x-1-1,never_created\nx-1-1,e-1\n", "line 3: contradicts line 2"],
    ["nothing that is said", "x-1-1,\n", "no row has anything in column `execution_id`"],
    ["a quote that is never closed", '"x-1-1,never_created\n', "line 2: this quote is never closed"],
  ])("refuses the whole file for %s", async (_, rows, problem) => {
    const output = await folderOf()
    const before = await accountsIn(output)
    const { code, stderr } = await credentials(output, "settle", fileOf(header + rows))
    expect([code, stderr.split("\n").at(0)]).toEqual([2, expect.stringContaining(problem)])
    expect(await accountsIn(output)).toEqual(before)
  })

  it("refuses never_created for an execution that the ledger knows, and a file without the columns", async () => {
    const accepted: Fact = aFact("StartAnswered", { ...taskOf(2), http_status: 202, execution_id: "e-2" })
    const output = await folderOf([...facts, accepted])
    const known = await credentials(output, "settle", fileOf(`${header}x-2-1,never_created\n`))
    expect(known.stderr.split("\n")[0]).toBe("line 2: the service created execution e-2 for it")
    const bare = await credentials(output, "settle", fileOf("id\nx\n"))
    expect(bare.stderr.split("\n")[0]).toBe(
      "line 1: no column `external_execution_id` and no column `execution_id`",
    )
  })
})

describe("credentials settle, with the ids of executions", () => {
  const path = join(base, "nightly.yaml")
  writeFileSync(
    path,
    `name: nightly
service:
  base_url: http://127.0.0.1:9
  flows_url: http://127.0.0.1:9
  app_secret: env:APP_SECRET
engines: [es-alpha:website]
customers: [{ id: c-1, parameters: { username: ana } }]
`,
  )
  const own = (execution_id: string, more: object = {}): StateAnswer =>
    state("COMPLETED", "COMPLETED", {
      external_execution_id: execution_id.replace("e-", "x-"),
      customer_id: CustomerId.make(`c-${execution_id.split("-")[1]}`),
      engine_reference,
      authentication_status: "AUTH_OK",
      ...more,
    })
  const settled = async (
    output: string,
    ids: ReadonlyArray<string>,
    answers: Script["state"],
    ...args: ReadonlyArray<string>
  ) => {
    const file = join(base, "ids.csv")
    writeFileSync(
      file,
      `external_execution_id,execution_id\n${ids.map((id) => `${id.replace("e-", "x-")},${id}\n`).join("")}`,
    )
    const calls: Array<Call> = []
    const at = (_: unknown, folder: string) =>
      Layer.merge(
        scripted(answers === undefined ? {} : { state: answers }, calls),
        Ledger.layer({ path: join(folder, "ledger.sqlite") }),
      )
    const ended = await commandAt(at, "credentials", "settle", file, "--output", output, ...args)
    return { ...ended, calls: calls.map(([, verb, id]) => [verb, id]) }
  }
  const placed = facts.map((fact): Fact => (fact._tag === "RunStarted" ? { ...fact, job_path: path } : fact))

  it("counts each as it ended: accepted sets the account to zero, nothing sent takes its strike off", async () => {
    const output = await folderOf(placed)
    const answers = (id: string) =>
      id === "e-1-1"
        ? own(id)
        : own(id, {
            status_code: "TEMPORARY_ERROR",
            status_reason: "NETWORK_ERROR",
            authentication_status: "not-performed",
          })
    const preview = await settled(output, ["e-1-1", "e-4-2"], answers, "--dry-run")
    expect([preview.code, preview.stdout, preview.calls]).toEqual([
      0,
      "This would be settled:\n  1 login that the source accepted\n  1 login that never reached the source\n",
      [
        ["state", "e-1-1"],
        ["state", "e-4-2"],
      ],
    ])
    expect(await strikesIn(output)).toBe("3/0 1/0 0/0 3/0")
    expect((await settled(output, ["e-1-1", "e-4-2"], answers)).code).toBe(0)
    const [first, , , last] = await accountsIn(output)
    expect([first?.sent.length, first?.good?.fingerprint, last?.sent.length]).toEqual([
      0,
      fingerprintOf(1),
      2,
    ])
  })

  it("closes an account whose login the source refused", async () => {
    const output = await folderOf(placed)
    const refusing = (id: string) =>
      own(id, {
        status_code: "AUTH_ERROR",
        status_reason: "BLOCKED_USER",
        authentication_status: "BLOCKED_USER",
      })
    const { stdout } = await settled(output, ["e-2-1"], refusing, "--json")
    expect(JSON.parse(stdout)).toEqual([
      { external_execution_id: "x-2-1", execution_id: "e-2-1", became: "rejected" },
    ])
    const account = (await accountsIn(output)).find((one) => one.account === keysOf(2).account)
    expect([account?.sent, account?.rejected.map(({ reason }) => reason)]).toEqual([[], ["BLOCKED_USER"]])
  })

  it("closes an account whose login a state of the execution refused before its end [promise 4 told settled]", async () => {
    const [intended] = lost(2, 1)
    const of = { ...taskOf(2), attempt: 1, execution_id: anId("e-2-1") }
    const told: ReadonlyArray<Fact> = [
      ...placed.slice(0, 1),
      planned(2),
      intended!,
      { _tag: "StartAnswered", ...of, answer: "accepted" },
      {
        _tag: "AttemptObserved",
        ...of,
        status_code: "AUTH_ERROR",
        status_reason: "BLOCKED_USER",
        authentication_status: "BLOCKED_USER",
      },
    ]
    const cancelled = (id: string) =>
      own(id, {
        status_code: "ABORTED",
        status_reason: "CLIENT_CANCELLED",
        authentication_status: "not-performed",
      })
    const { stdout } = await settled(await folderOf(told), ["e-2-1"], cancelled)
    expect(stdout).toBe("Settled:\n  1 login that the source rejected\n")
  })

  it.each([
    ["still open", working, "whose execution is still open"],
    ["without an answer", lostAnswer, "whose execution could not be read"],
  ])("leaves one as it is that is %s", async (_, answer, told) => {
    const output = await folderOf(placed)
    const before = await accountsIn(output)
    const { code, stdout } = await settled(output, ["e-1-1"], (id) =>
      "view" in answer
        ? { ...answer, view: { ...answer.view, external_execution_id: id.replace("e-", "x-") } }
        : answer,
    )
    expect([code, stdout]).toEqual([0, `Settled:\n  1 login ${told}: they count as before\n`])
    expect(await accountsIn(output)).toEqual(before)
  })

  it.each([
    ["somebody else's", own("e-9-9"), "line 2: execution e-1-1 does not say that it is the one of x-1-1"],
    ["nobody's by name", state("COMPLETED", "COMPLETED"), "line 2: execution e-1-1 does not say"],
    ["not there", { _tag: "NotFound" } as const, "line 2: the service does not know execution e-1-1"],
  ])("refuses the whole file for one that is %s", async (_, answer, problem) => {
    const output = await folderOf(placed)
    const before = await accountsIn(output)
    const { code, stderr } = await settled(output, ["e-1-1", "e-2-1"], (id) =>
      id === "e-2-1" ? own(id) : answer,
    )
    expect([code, stderr.split("\n")[0]]).toEqual([2, expect.stringContaining(problem)])
    expect(await accountsIn(output)).toEqual(before)
  })

  it("asks for the job file if it is not where it was", async () => {
    const output = await folderOf()
    const { code, stderr } = await settled(output, ["e-1-1"], (id) => own(id))
    expect([code, stderr]).toEqual([2, expect.stringContaining("executions of nightly have to be read")])
    expect((await settled(output, ["e-1-1"], (id) => own(id), "--job", path)).code).toBe(0)
  })
})

describe("forget, of a customer with logins whose end nobody has read", () => {
  const entries = [1, 2, 3, 4, 5].map((attempt) => ({
    external_execution_id: `x-1-${attempt}`,
    engine_reference,
    sent_at: "2026-11-20T22:31:00.000Z",
  }))
  const all: ReadonlyArray<Fact> = [
    started,
    ...[1, 2].map(planned),
    // Refused in a shape that says nothing; lost; adopted after a loss, and open; kept there; deleted.
    ...lost(1, 1, "400"),
    aFact("StartAnswered", {
      ...taskOf(1),
      answer: "refused",
      http_status: 400,
      status_reason: "UNEXPECTED_ANSWER",
    }),
    ...lost(1, 2),
    ...lost(1, 3),
    aFact("StartAnswered", { ...taskOf(1), attempt: 3, http_status: 202, execution_id: "e-3" }),
    { _tag: "OrphanSuspected", ...taskOf(1), attempt: 3, external_execution_id: "x-1-3" },
    ...lost(2, 1),
    { _tag: "CredentialReleased", account: "nobody", because: "c-1 has called" },
    { _tag: "RunEnded", run_id, exit_code: 4, leftovers: true, kept: 0 },
  ]
  const remaining = [
    { kind: "unknown_start", ...entries[1] },
    { kind: "open_execution", ...entries[2], execution_id: "e-3" },
    { kind: "possible_orphan", ...entries[2] },
    { kind: "unproven_login", ...entries[0] },
  ]
  const forget = (output: string, ...args: ReadonlyArray<string>) =>
    commandHere("forget", "c-1", "--here-only", "--output", output, ...args)

  it("names what may remain at the service, then removes it here, and the strikes still count", async () => {
    const output = await folderOf(all)
    const preview = await forget(output, "--dry-run", "--json")
    expect(preview.stderr).toBe("")
    expect([preview.code, JSON.parse(preview.stdout).may_remain]).toEqual([0, remaining])
    const { code, stdout } = await forget(output, "--yes")
    expect([code, stdout.slice(0, stdout.indexOf("Removed:"))]).toEqual([
      0,
      [
        "May remain at the service (note it now: the removal takes it out of this folder):",
        "  a start whose answer is not known: external id x-1-2, es-alpha:website, sent 2026-11-20T22:31:00.000Z",
        "  an open execution: external id x-1-3, execution e-3, es-alpha:website, sent 2026-11-20T22:31:00.000Z",
        "  a possible second execution: external id x-1-3, es-alpha:website, sent 2026-11-20T22:31:00.000Z",
        "  a login whose end is unknown: external id x-1-1, es-alpha:website, sent 2026-11-20T22:31:00.000Z",
        "",
      ].join("\n"),
    ])
    const traces = readdirSync(output, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .filter((entry) => /x-1-|e-3|c-1/.test(readFileSync(join(entry.parentPath, entry.name), "latin1")))
    expect(traces.map(({ name }) => name)).toEqual([])
    expect(await strikesIn(output)).toBe("3/0 1/0")
    expect(JSON.parse((await credentials(output, "list", "--json")).stdout)).toHaveLength(4)
    expect((await credentials(output, "list")).stdout).toContain("(removed)")
  })

  it("names two where neither a start nor its probe was answered [promise 15 probe]", async () => {
    const again = aFact("StartIntended", {
      ...taskOf(1),
      external_execution_id: "x-1-1",
      customer_id: "c-1",
      engine_reference,
      fingerprint: fingerprintOf(1),
      login: keysOf(1),
      probe: true,
    })
    const kindsWith = async (...answered: ReadonlyArray<Fact>) => {
      const output = await folderOf([started, planned(1), ...lost(1, 1), again, ...answered])
      const { stdout } = await forget(output, "--dry-run", "--json")
      return JSON.parse(stdout).may_remain.map(({ kind, ...of }: { kind: string }) => [kind, of])
    }
    const both = [
      ["unknown_start", entries[0]],
      ["possible_orphan", entries[0]],
    ]
    const answer = (said: "lost" | "not_created") => aFact("StartAnswered", { ...taskOf(1), answer: said })
    expect(await kindsWith()).toEqual(both)
    expect(await kindsWith(answer("lost"))).toEqual(both)
    expect(await kindsWith(answer("not_created"))).toEqual(both.slice(0, 1))
  })

  it("has them in JSON, also if the part before was cut off when they were gone from the ledger", async () => {
    const output = await folderOf(all)
    const told = await forget(output, "--yes", "--json")
    expect(JSON.parse(told.stdout).may_remain).toEqual(remaining)
    // Before anything is removed: whoever cuts the command off has read it.
    expect(told.stderr.split("\n").filter((line) => line.includes("external id x-1-"))).toHaveLength(4)
    const zero = { runs: 1, facts: 9, bodies: 0, documents: 0, rows: 0, held: 0, tokens: 0, recordings: 0 }
    const counts = { ...zero, deleted: 0, given_up: 0, left_at_service: 1, logins_kept: 3 }
    const of = { receipt: "forgotten-0", customer_id: "c-1", tasks: [taskOf(1)], executions: ["e-3"] }
    const plan = { ...of, sessions: [], documents: [], counts, remaining }
    const receipt: Fact = { _tag: "CustomerForgotten", receipt: of.receipt, sealed_from: 2, ...counts }
    const cut = await folderOf([started, receipt])
    writeFileSync(join(cut, "forgetting.json"), JSON.stringify(plan))
    expect(JSON.parse((await forget(cut, "--yes", "--json")).stdout).may_remain).toEqual(remaining)
  })
})
