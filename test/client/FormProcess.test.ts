/** The checker's process: bounds of time and memory that end it and not this one; the next form is answered. */
import { fork } from "node:child_process"
import { once } from "node:events"
import { readFileSync, readdirSync, readlinkSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { FormChecker, FormProcess } from "../../src/client/FormProcess.ts"
import type { FormAnswer, FormCase } from "../../src/client/FitForms.ts"
import { configsForm, loginForm, paramsForm } from "../task/Samples.ts"
import { withLayer } from "../harness/Steps.ts"

const { live } = withLayer(FormProcess.layer())

const request = (parameters: Readonly<Record<string, unknown>>, cases: ReadonlyArray<FormCase> = []) => ({
  body: JSON.stringify({ parameters, configurations: configsForm(), features: [] }),
  cases,
})
const one = (parameters: Readonly<Record<string, unknown>>): FormCase => ({
  features: [],
  configurations: {},
  parameters,
})
const fine = { username: "user", password: "pass", branch: "12" }
const fitted: FormAnswer = {
  _tag: "Fitted",
  warnings: [],
  fits: [
    {
      settings: { errors: [], warnings: [] },
      parameters: { errors: [], warnings: [], parameters: { ...fine, branch: 12 } },
    },
  ],
}
/** Its pattern never comes to an end with the value. */
const endless = paramsForm({ a: { type: "string", pattern: "^(a+)+$" }, b: { type: "string", minLength: 2 } })
const slow = request(endless, [one({ a: `${"a".repeat(60)}!`, b: "x" }), one({ a: "a", b: "xx" })])
/** Each answer holds thousands of complaints about values of many items. */
const greedy = paramsForm({ list: { items: { type: "string", minLength: 9, pattern: "^x$" } } })
const lists = one({ list: Array.from({ length: 150_000 }, (_, at) => `${at}`) })

/** Processes with this in their command line, which has a zero behind each argument. */
const allWith = (part: string): ReadonlyArray<string> => {
  const running = readdirSync("/proc").filter((name) => /^\d+$/.test(name))
  const isMeant = (pid: string): boolean => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(part)
    } catch {
      return false
    }
  }
  return running.filter(isMeant)
}
const killAll = (part: string): void => {
  const meant = allWith(part)
  assert.strictEqual(meant.length, 1)
  for (const pid of meant) process.kill(Number(pid), "SIGKILL")
}

describe("the process that checks forms", () => {
  live("returns what the forms say, and the values as they will be sent", function* () {
    const { check } = yield* FormChecker
    assert.deepStrictEqual(yield* check(request(loginForm, [one(fine)])), fitted)
  })

  withLayer(FormProcess.layer({ memoryMb: 70 })).live(
    "stays in no folder that somebody may remove [forms folder removed]",
    function* () {
      yield* (yield* FormChecker).check(request(loginForm))
      const [pid = ""] = allWith(["FormHostWorker.ts", "70", ""].join("\0"))
      assert.strictEqual(readlinkSync(`/proc/${pid}/cwd`), "/")
    },
  )

  withLayer(FormProcess.layer({ answerWithin: Duration.millis(500) })).live(
    "is killed if a form takes too long; this is reported, and the next form is checked",
    function* () {
      const { check } = yield* FormChecker
      const answers = yield* Effect.forEach(
        [slow, request(loginForm, [one(fine)])],
        (asked) => check(asked),
        { concurrency: 2 },
      )
      assert.deepStrictEqual(answers, [
        { _tag: "Unusable", why: "checking it takes longer than 500ms" },
        fitted,
      ])
    },
  )

  live("checks a form without its patterns if they take too long, and says so for each login", function* () {
    const { check } = yield* FormChecker
    const answer = yield* check(slow)
    if (answer._tag === "Unusable") return assert.fail(answer.why)
    assert.deepStrictEqual(
      answer.fits.map(({ settings, parameters }) => [settings.warnings, parameters?.errors]),
      [[{ loc: ["b"], message: "must NOT have fewer than 2 characters" }], []].map((errors) => [
        [{ loc: [], message: "the patterns of this form take too long and are not checked" }],
        errors,
      ]),
    )
  })

  withLayer(FormProcess.layer({ memoryMb: 40, answerWithin: Duration.seconds(50) })).live(
    "is killed if a form takes too much memory; this is reported, and the next form is checked",
    function* () {
      const { check } = yield* FormChecker
      const answers = [yield* check(request(greedy, [lists])), yield* check(request(loginForm, [one(fine)]))]
      assert.deepStrictEqual(answers, [
        { _tag: "Unusable", why: "checking it takes more than 40 MB" },
        fitted,
      ])
    },
  )

  withLayer(FormProcess.layer({ memoryMb: 65 })).live(
    "is started again if it was killed while it was idle [promise 10 idle checker]",
    function* () {
      const { check } = yield* FormChecker
      assert.deepStrictEqual(yield* check(request(loginForm, [one(fine)])), fitted)
      for (const pause of ["0 millis", "200 millis"] as const) {
        killAll(["FormHostWorker.ts", "65", ""].join("\0"))
        yield* Effect.sleep(pause)
        assert.deepStrictEqual(yield* check(request(loginForm, [one(fine)])), fitted)
      }
    },
  )

  it("goes on when all are interrupted, and ends in the middle of a form once nobody listens [promise 10 checker]", async () => {
    const checker = fork(new URL("../../src/client/FormHostWorker.ts", import.meta.url), ["256", "77"], {
      serialization: "advanced",
    })
    await once(checker, "message")
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) checker.kill(signal)
    checker.send(request(loginForm, [one(fine)]))
    assert.deepStrictEqual((await once(checker, "message"))[0], fitted)
    checker.send(slow)
    checker.disconnect()
    assert.deepStrictEqual(await once(checker, "exit"), [0, null])
  }, 20_000)
})
