/** A part of a job, by the program as a whole: nobody else hears of it, and it is not resumed. */
import { mkdirSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { plainEnvironment } from "../harness/Environment.ts"
import { startHere } from "../harness/ProgramHere.ts"
import { sharedFolder } from "../harness/Folder.ts"

const root = sharedFolder()
const env = { ...plainEnvironment, NIGHTJAR_OUTPUT: join(root, "output"), LOGIN_PASSWORD: "correct horse" }

const job = (name: string): string => {
  const path = `${name}.yaml`
  const text = `name: ${name}
service: { sandbox: { seed: 3, speed: 3000 } }
engines: [sandbox-bank:website]
record_schemas: []
customers:
  - { id: ${name}-1, parameters: { username: ok+queue-1200+run-900+x-${name}, password: env:LOGIN_PASSWORD } }
`
  writeFileSync(join(root, path), text)
  return path
}

const nightjar = (...args: ReadonlyArray<string>) => startHere(args, { environment: env, folder: root }).ended

it("is not begun where SQL of a job reads tables by names of an earlier version [refused old SQL]", async () => {
  const sql = (path: string, text: string) => {
    mkdirSync(join(root, path, ".."), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  sql(
    "old/models/by_name.sql",
    "-- Was customer_profiles_latest.\nSELECT name,\n  1 FROM customer_profiles_latest;\n",
  )
  sql("old/models/fine.sql", "SELECT * FROM customer_profiles")
  sql("old/tests/by_run.sql", "SELECT name FROM customer_profiles WHERE run_id IS NULL")
  const [old, other] = [job("old"), job("beside-old")]
  writeFileSync(join(root, old), "models: old/models\ngates: { tests: old/tests }\n", { flag: "a" })
  const advice = "(`nightjar help tables`)"
  const problems = `old/models/by_name.sql:3:10: \`customer_profiles_latest\` is \`customer_profiles\` now ${advice}
old/tests/by_run.sql:1:42: what is true now has no \`run_id\`: the rows of each run are in \`nights.customer_profiles\` ${advice}
`
  for (const command of ["validate", "plan", "run"]) {
    const { code, stderr, stdout } = await nightjar(command, old, other)
    const isValid = command === "validate"
    expect([code, stderr.slice(0, problems.length)]).toEqual([2, problems])
    expect(stdout).toBe(isValid ? `${other}: valid, 1 task\n` : "")
    if (!isValid) expect(stderr).toContain("[job-invalid]")
  }
  expect(JSON.parse((await nightjar("runs", "--json")).stdout)).toEqual([])
})

it("is not rerun for tasks that its job no longer names: no run is made [rerun not in job]", async () => {
  const written = (...ids: ReadonlyArray<string>) => {
    const customers = ids.map(
      (id) =>
        `  - { id: ${id}, parameters: { username: end-FAILED+queue-5+run-9+x-${id}, password: env:LOGIN_PASSWORD } }\n`,
    )
    const head =
      "name: gone\nservice: { sandbox: { seed: 3, speed: 3000 } }\nengines: [sandbox-bank:website]\n"
    writeFileSync(join(root, "gone.yaml"), `${head}record_schemas: []\ncustomers:\n${customers.join("")}`)
  }
  const gone = (...args: ReadonlyArray<string>) =>
    nightjar(...args, "--output", join(root, "gone"), "--no-progress")
  written("g-1", "g-2")
  expect((await gone("run", "gone.yaml")).code).toBe(3)
  written("g-2")
  const { code, stdout } = await gone("rerun", "--customer", "g-1")
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(
      /^The job no longer names any of the selected tasks of gone\.\S+: nothing to rerun\.\n$/,
    ),
  ])
  expect((await gone("rerun", "--customer", "g-1", "--json")).stdout).toBe("[]\n")
  const preview = await gone("rerun", "--customer", "g-1", "--dry-run")
  expect([preview.code, preview.stdout]).toEqual([0, expect.stringContaining("skipped, NOT_IN_JOB")])
  expect(JSON.parse((await gone("runs", "--json")).stdout)).toHaveLength(1)
  expect((await gone("rerun")).stdout).toContain(".2: took")
})

it("of which there is nothing to do says how many tasks came to the job since, until they ran [plan added] [run added]", async () => {
  const written = (...ids: ReadonlyArray<string>) => {
    const customers = ids.map(
      (id) =>
        `  - { id: ${id}, parameters: { username: ok+queue-5+run-9+x-${id}, password: env:LOGIN_PASSWORD } }\n`,
    )
    const head =
      "name: added\nservice: { sandbox: { seed: 3, speed: 3000 } }\nengines: [sandbox-bank:website]\n"
    writeFileSync(join(root, "added.yaml"), `${head}record_schemas: []\ncustomers:\n${customers.join("")}`)
  }
  const added = async (command: string, ...args: ReadonlyArray<string>) => {
    const output = ["--output", join(root, "added"), "--no-progress"]
    const { code, stdout } = await nightjar(command, "added.yaml", ...args, ...output)
    const line = /^(?:.+\n){0,3}?(\d+ tasks? of the job [^:]*:)/.exec(stdout)?.[1]
    return [code, line, /\d+ already finished/.exec(stdout.replaceAll("\n", " "))?.[0]]
  }
  written("a-1")
  expect(await added("run")).toEqual([0, undefined, undefined])
  written("a-1", "a-2", "a-3")
  const two = "2 tasks of the job are not in this night:"
  expect(await added("plan")).toEqual([0, two, "1 already finished"])
  expect(await added("run")).toEqual([0, two, undefined])
  expect(await added("run", "--customer", "a-2")).toEqual([0, undefined, undefined])
  expect(await added("run")).toEqual([0, "1 task of the job is not in this night:", undefined])
  expect(await added("run", "--new")).toEqual([0, undefined, undefined])
  expect(await added("plan")).toEqual([0, undefined, "3 already finished"])
})

it("is finished by a rerun while a deletion is due, though every task succeeded [rerun left]", async () => {
  writeFileSync(join(root, "refused.yaml"), "faults: [{ on: deleteExecution, rate: 1, status: 409 }]\n")
  const path = job("due")
  const text = `name: due
service: { sandbox: { seed: 3, speed: 3000, faults: refused.yaml } }
engines: [sandbox-bank:website]
record_schemas: []
customers: [{ id: due-1, parameters: { username: ok+queue-5+run-9, password: env:LOGIN_PASSWORD } }]
`
  writeFileSync(join(root, path), text)
  const due = (...args: ReadonlyArray<string>) =>
    nightjar(...args, "--output", join(root, "due"), "--no-progress")
  const collects = expect.stringMatching(
    /^No task of due\.\S+ matches: nothing is started; what its night left open is completed\.\n/,
  ) as unknown
  expect((await due("run", path)).code).toBe(4)
  expect(await due("rerun", "--dry-run")).toEqual({ code: 0, stdout: "", stderr: collects })
  const still = await due("rerun")
  expect(still).toEqual({ code: 4, stdout: expect.stringMatching(/^due\.[\d-]+: took /), stderr: collects })
  writeFileSync(join(root, path), text.replace(", faults: refused.yaml", ""))
  const { code, stdout, stderr } = await due("rerun", "--json")
  const [{ run_id = "", executions = 0 } = {}] = JSON.parse(stdout) as ReadonlyArray<Record<string, unknown>>
  expect([code, run_id, executions, stderr]).toEqual([0, expect.stringMatching(/^due\.[\d-]+$/), 1, collects])
  const { stdout: none, ...after } = await due("rerun")
  expect([none.endsWith("matches: nothing to rerun.\n"), after]).toEqual([true, { code: 0, stderr: "" }])
  expect(JSON.parse((await due("runs", "--json")).stdout)).toHaveLength(1)
})

it.each(["executing", "publishing"])(
  "rerun and killed while %s, is completed and told by the same rerun, without a login [rerun cut] [rerun told]",
  async (stage) => {
    const name = `cut-${stage}`
    const rest = ["--output", join(root, name), "--no-progress"]
    const written = (end: string) =>
      writeFileSync(
        join(root, `${name}.yaml`),
        `name: ${name}
service: { sandbox: { seed: 3, speed: 300 } }
engines: [sandbox-bank:website]
record_schemas: []
customers: [{ id: c-1, parameters: { username: ${end}+queue-5+run-1200, password: env:LOGIN_PASSWORD } }]
`,
      )
    const runs = async () =>
      JSON.parse((await nightjar("runs", "--json", ...rest)).stdout) as ReadonlyArray<Record<string, unknown>>
    written("end-FAILED")
    expect((await nightjar("run", `${name}.yaml`, ...rest)).code).toBe(3)
    written("ok")
    const run_id = String((await runs())[0]?.["run_id"])
    const reached = Promise.withResolvers<void>()
    const onStderr = (all: string) => (all.includes(`: ${stage}`) ? reached.resolve() : undefined)
    const surroundings = { environment: env, folder: root, onStderr }
    const running = startHere(["rerun", run_id, ...rest.slice(0, -1)], surroundings)
    await reached.promise
    const isOpen = async () => (await nightjar("explain", "c-1", ...rest)).stdout.includes("ONGOING")
    if (stage === "executing") while (!(await isOpen())) continue
    running.kill("SIGINT")
    expect((await running.ended).code).toBe(130)
    const { code, stdout } = await nightjar("rerun", run_id, ...rest)
    expect([code, stdout.split("took", 1)]).toEqual([0, [`${run_id}.2: `]])
    expect(await runs()).toMatchObject([{ exit_code: 3 }, { run_id: `${run_id}.2`, exit_code: 0 }])
  },
)

describe("a part of a job", () => {
  const heard: Array<string> = []
  const receiver = createServer((request, response) => {
    heard.push(String(request.url))
    request.resume()
    response.end()
  })
  const written = (customersMin: number) =>
    writeFileSync(
      join(root, "some.yaml"),
      `name: some
service: { sandbox: { seed: 3, speed: 3000 } }
engines: [sandbox-bank:website]
record_schemas: []
min_customers: ${customersMin}
notify: [{ url: env:NOTICE_URL }, { ping: env:PING_URL }]
customers:
  - { id: k-1, parameters: { username: ok+queue-5+run-9+x-1, password: env:LOGIN_PASSWORD } }
  - { id: k-2, parameters: { username: end-FAILED+queue-5+run-9+x-2, password: env:LOGIN_PASSWORD } }
  - { id: k-3, parameters: { username: ok+queue-5+run-9+x-3, password: env:LOGIN_PASSWORD } }
`,
    )

  it("is planned and run by its customers or their number, and nobody is told of it [part told]", async () => {
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve))
    const { port } = receiver.address() as AddressInfo
    written(9)
    const at = `http://127.0.0.1:${port}`
    const environment = { ...env, NOTICE_URL: `${at}/notice`, PING_URL: `${at}/ping` }
    const output = ["--output", join(root, "parts"), "--no-progress"]
    const some = (...args: ReadonlyArray<string>) =>
      startHere([...args, ...output], { environment, folder: root }).ended
    const unknown = await some("run", "some.yaml", "--customer", "k-1", "--customer", "k-4")
    expect([unknown.code, unknown.stderr]).toEqual([
      2,
      expect.stringMatching(
        /there is no such name: --customer k-\d in job some; did you mean `k-\d`/,
      ) as unknown,
    ])
    const none = await some("plan", "some.yaml", "--first", "0")
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining("from 1") as unknown])
    const planned = await some("plan", "some.yaml", "--first", "2", "--json")
    const about = { how: "new", tasks: [{ customer_id: "k-1" }, { customer_id: "k-2" }] }
    expect(JSON.parse(planned.stdout)).toMatchObject([about])
    const ran = await some("run", "some.yaml", "--customer", "k-1", "--customer", "k-2")
    expect([ran.code, ran.stderr]).toEqual([3, ""])
    expect(ran.stdout).toMatch(
      /^some\.\d{4}-\d\d-\d\d\.2: a part of the job, took .*, exit code 3\n2 tasks: /,
    )
    const [run] = JSON.parse((await some("runs", "--json")).stdout) as ReadonlyArray<Record<string, unknown>>
    expect(run?.["part"]).toBe(run?.["run_id"])
    expect((await some("runs")).stdout).toMatch(/\.2 .*  a part of the job\n/)
    const again = await some("rerun", "--failed")
    expect([again.code, again.stderr]).toEqual([3, ""])
    expect(again.stdout).toMatch(/\.3: a part of the job, .*\n1 task: 1 failed/)
    expect(heard).toEqual([])
    // The night is held to its number of customers, and everybody hears of it.
    expect((await some("run", "some.yaml")).code).toBe(2)
    written(3)
    const night = await some("run", "some.yaml")
    expect([night.code, night.stdout.split(":", 1)]).toEqual([
      3,
      [String(run?.["run_id"]).slice(0, -".2".length)],
    ])
    expect(heard.toSorted()).toEqual(["/notice", "/ping/fail", "/ping/start"])
    receiver.close()
  })

  it("that is interrupted says that it is not resumed, and so does `status`: the next run collects it", async () => {
    const path = job("slow")
    const output = ["--output", join(root, "slow")]
    let isKilled = false
    const running = startHere(["run", path, "--first", "1", ...output], {
      environment: env,
      folder: root,
      onStderr: (all) => {
        if (isKilled || !all.includes("executing")) return
        isKilled = true
        running.kill("SIGINT")
      },
    })
    const { code, stderr } = await running.ended
    expect([code, stderr]).toEqual([130, expect.stringMatching(/\[interrupted-part\]\n$/) as unknown])
    const { stdout } = await nightjar("status", ...output)
    expect(stdout).toContain("The run of a part of a job is not resumed")
    expect(stdout).not.toContain("nightjar run")
    const night = await nightjar("run", path, "--json", "--no-progress", ...output)
    const ran = [{ run_id: expect.stringMatching(/^slow\.\d{4}-\d\d-\d\d$/) as unknown, executions: 1 }]
    expect({ code: night.code, ran: JSON.parse(night.stdout) as unknown }).toMatchObject({ code: 0, ran })
    const [cut] = JSON.parse((await nightjar("runs", "--json", ...output)).stdout) as ReadonlyArray<object>
    // What had begun was collected; what had not is over.
    const exit_code = stdout.includes("\n0 executions") ? 4 : 0
    expect(cut).toMatchObject({ exit_code, leftovers: false })
  })
})
