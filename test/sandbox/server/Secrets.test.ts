/**
 * The application secret (section 5): no endpoint answers without one, a stranger's is refused, and no
 * answer repeats it, over both ways to reach the service.
 */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { inBothWays, ofTheService } from "./BothWays.ts"
import { Caller, field, textField } from "./Caller.ts"

type Method = "GET" | "HEAD" | "POST" | "PUT" | "DELETE"

const endpoints: ReadonlyArray<readonly [name: string, method: Method, path: string, body?: unknown]> = [
  ["startExecution", "POST", "/executions/init/v1/parametrized", {}],
  ["readExecution", "GET", "/executions/handler/v1/ID"],
  ["pollExecution", "HEAD", "/executions/handler/v1/ID"],
  ["resumeExecution", "PUT", "/executions/handler/v1/ID", { code: "1" }],
  ["abortExecution", "DELETE", "/executions/handler/v1/ID/abort"],
  ["deleteExecution", "DELETE", "/executions/handler/v1/ID/delete"],
  ["readProfile", "GET", "/executions/results/ID/customer/v1/profile"],
  ["listEngines", "GET", "/config/engines/list"],
  ["showEngine", "GET", "/config/engines/sandbox-bank:website"],
  ["readFlowResults", "GET", "flows/es-public-administration/v1/manager/SESSION/results"],
  ["downloadAttachment", "GET", "flows/attachments/SESSION/any"],
]

inBothWays("the application secret", (told) => {
  for (const [name, method, path, body] of endpoints) {
    told(
      `is required by ${name}, and a stranger's is refused [${name} 401] [${name} 403] [auth-rule 1]`,
      Effect.gen(function* () {
        const caller = yield* Caller
        const started = yield* caller.start("queue-0+run-0")
        const url = (
          path.startsWith("flows/") ? path.replace("flows", caller.flows_url) : `${caller.base_url}${path}`
        )
          .replace("ID", textField(started, "execution_id"))
          .replace("SESSION", textField(started, "session_id"))
        const call = (secret: string | undefined) => caller.call(method, url, { secret, body })
        const without = yield* call(undefined)
        const strange = yield* call("sandbox-app-0")
        expect([without.status, without.text, strange.status, strange.text]).toEqual([
          401,
          method === "HEAD" ? "" : '{"detail":"X-APP-SECRET is missing"}',
          403,
          method === "HEAD" ? "" : '{"detail":"unknown application secret"}',
        ])
        const { truth } = yield* Sandbox
        expect((yield* truth).starts.length).toBe(1)
      }),
    )
  }

  told(
    "is never in an answer [auth-rule 2]",
    Effect.gen(function* () {
      const caller = yield* Caller
      const started = yield* caller.start("queue-0+run-0")
      const answers = [
        started,
        yield* caller.read(textField(started, "execution_id")),
        yield* caller.results(textField(started, "session_id")),
        yield* caller.start("ok", { features: ["nothing"] }),
        yield* caller.call("GET", `${caller.base_url}/config/engines/list`),
        yield* caller.start("ok", {}, "sandbox-app-9"),
      ]
      expect(answers.map(({ status }) => status)).toEqual([202, 200, 200, 422, 200, 403])
      for (const { text } of answers) expect(text).not.toMatch(/sandbox-app-\d/)
    }),
  )
})

ofTheService("the engine directory", (told) => {
  told(
    "is the same all day, and a caller that polls it in a loop is reported [limit 10]",
    Effect.gen(function* () {
      const caller = yield* Caller
      const { truth } = yield* Sandbox
      const breaks = Effect.map(truth, ({ ruleBreaks }) => ruleBreaks.map(({ rule }) => rule))
      const list = Effect.map(caller.call("GET", `${caller.base_url}/config/engines/list`), (answer) => {
        const json = field(answer)
        return Array.isArray(json) ? json.map((engine) => field(engine, "reference")) : []
      })
      const first = yield* list
      for (let hour = 0; hour < 24; hour += 1) {
        yield* TestClock.adjust("1 hour")
        expect(yield* list).toEqual(first)
      }
      expect(yield* breaks).toEqual([])
      for (let n = 0; n < 100; n += 1) yield* list
      expect(yield* breaks).toEqual(["catalogue_polled_in_loop"])
    }),
  )
})
