/**
 * Another application of the same service in a simulated night: its own runs on the same customers and engines, with
 * a person who answers challenges rightly and wrongly, and curious calls on the executions and sessions of ours. It
 * notes everything that one application must never see or suffer of another. It does a bounded number of things.
 */
import { Effect, Option } from "effect"
import { HttpClientRequest, type HttpMethod } from "effect/http"
import { SandboxClient } from "../../src/sandbox/server/SandboxServer.ts"
import type { SimulatedService } from "./SimulatedService.ts"

/** An application that may tokenize as ours may, and is a stranger to it. */
const secret = "sandbox-app-3"
export const neighbourApplication = "65f0c0ffee00000000000003"

interface Neighbourhood {
  readonly service: SimulatedService
  /** A number in [0, 1), from the seed. */
  readonly random: () => number
  /** Customers and engines that ours runs on. */
  readonly subjects: ReadonlyArray<{ readonly customer_id: string; readonly engine_reference: string }>
  readonly deeds: number
}

interface Answer {
  readonly status: number
  readonly json: unknown
}

const words = [
  "queue-30+run-60",
  "queue-5+run-20+challenge-4711",
  "queue-1+run-5+end-BLOCKED_USER",
  "queue-600+run-300",
  "queue-20+run-40+challenge-4711+expire-90",
]

const fieldOf = (json: unknown, name: string): string | undefined => {
  const value: unknown = typeof json === "object" && json !== null ? Reflect.get(json, name) : undefined
  return typeof value === "string" ? value : undefined
}

interface Own {
  readonly execution_id: string
  aborted: boolean
}

export class Neighbour {
  /** What it should not have been able to see or suffer, in words. */
  readonly complaints: Array<string> = []
  private readonly own: Array<Own> = []
  private readonly around: Neighbourhood
  constructor(around: Neighbourhood) {
    this.around = around
  }

  readonly live = Effect.gen({ self: this }, function* () {
    for (let deeds = 0; deeds < this.around.deeds; deeds += 1) {
      yield* Effect.sleep(Math.floor(this.around.random() ** 2 * 600_000))
      const what = this.around.random()
      if (what < 0.4) yield* this.start()
      else if (what < 0.75) yield* this.look()
      else yield* this.pry()
    }
  })

  private call(method: HttpMethod.HttpMethod, url: string, body?: unknown): Effect.Effect<Answer> {
    const bare = HttpClientRequest.make(method)(url, { headers: { "X-APP-SECRET": secret } })
    const request = body === undefined ? bare : HttpClientRequest.bodyJsonUnsafe(bare, body)
    const { client, perform } = this.around.service
    return perform(
      Effect.gen({ self: this }, function* () {
        const response = yield* client.execute(request)
        const json = Option.getOrUndefined(yield* Effect.option(response.json))
        return { status: response.status, json }
      }).pipe(Effect.orDie),
    )
  }

  private pick<T>(values: ReadonlyArray<T>): T | undefined {
    return values[Math.floor(this.around.random() * values.length)]
  }

  private handler(execution_id: string): string {
    return `${SandboxClient.base_url}/executions/handler/v1/${execution_id}`
  }

  private start() {
    return Effect.gen({ self: this }, function* () {
      const subject = this.pick(this.around.subjects)
      if (subject === undefined) return
      const { status, json } = yield* this.call(
        "POST",
        `${SandboxClient.base_url}/executions/init/v1/parametrized`,
        {
          customer_id: subject.customer_id,
          engine_reference: subject.engine_reference,
          parameters: { username: this.pick(words) ?? "ok", password: "a-neighbour" },
          base_configurations: { customer_interaction_available: true },
        },
      )
      const execution_id = fieldOf(json, "execution_id")
      if (execution_id === undefined) return
      if (status === 202) this.own.push({ execution_id, aborted: false })
      if (status === 409 && !this.own.some((own) => own.execution_id === execution_id))
        this.complaints.push(`a start was refused over ${execution_id}, which is another application's`)
    })
  }

  /** Its own executions: answers a challenge, aborts some, deletes what is closed. */
  private look() {
    return Effect.gen({ self: this }, function* () {
      const own = this.pick(this.own)
      if (own === undefined) return
      const { execution_id } = own
      const { status, json } = yield* this.call("GET", this.handler(execution_id))
      if (status === 404) this.complaints.push(`${execution_id} is gone and was not deleted`)
      if (fieldOf(json, "status_reason") === "CLIENT_CANCELLED" && !own.aborted)
        this.complaints.push(`${execution_id} was aborted by another application`)
      if (status === 423)
        yield* this.call("PUT", this.handler(execution_id), {
          code: this.around.random() < 0.5 ? "4711" : "0000",
        })
      if (status === 202 && this.around.random() < 0.1) {
        own.aborted = true
        yield* this.call("DELETE", `${this.handler(execution_id)}/abort`)
      }
      if (status === 200 && this.around.random() < 0.5) {
        yield* this.call("DELETE", `${this.handler(execution_id)}/delete`)
        this.own.splice(this.own.indexOf(own), 1)
      }
    })
  }

  /** Whatever it asks about an execution of ours looks as if it never existed (sections 5 and 7). */
  private pry() {
    return Effect.gen({ self: this }, function* () {
      const strangers = this.around.service
        .truth()
        .executions.filter(({ application }) => application !== neighbourApplication)
      const stranger = this.pick(strangers)
      if (stranger === undefined) return
      const { execution_id, session_id } = stranger
      const handler = this.handler(execution_id)
      const call = this.pick([
        ["GET", handler],
        ["PUT", handler],
        ["DELETE", `${handler}/abort`],
        ["DELETE", `${handler}/delete`],
        ["GET", `${SandboxClient.base_url}/executions/results/${execution_id}/customer/v1/profile`],
        ["GET", `${SandboxClient.flows_url}/es-public-administration/v1/manager/${session_id}/results`],
      ] as const)
      if (call === undefined) return
      const [method, url] = call
      const { status } = yield* this.call(method, url, method === "PUT" ? { code: "4711" } : undefined)
      // Where there is no flow API for this account, or it takes no such ids, that is so for any id.
      const isHidden =
        status === 404 || (url.startsWith(SandboxClient.flows_url) && [403, 422].includes(status))
      if (!isHidden) this.complaints.push(`${method} on a stranger's ${execution_id} answered ${status}`)
    })
  }
}
