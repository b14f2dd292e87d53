/**
 * `nightjar hooks` against the embedded service as a server, and against services that answer otherwise.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { Workplace } from "./Nightjar.ts"
import type { Running } from "../harness/ProgramHere.ts"

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const place = new Workplace()
let server: Running
const jobFor = (name: string, flows_url: string): string =>
  place.write(
    `${name}.yaml`,
    `name: ${name}\nservice: { base_url: "${flows_url}", flows_url: "${flows_url}", app_secret: env:APP }\n` +
      "engines: [sandbox-bank:website]\ncustomers: [{ id: c-1, parameters: { username: ok } }]\n",
  )
beforeAll(async () => {
  server = place.start(["sandbox", "--port", "0"])
  place.environment["APP"] = "sandbox-app-1"
  jobFor("job", (JSON.parse(await server.firstLine) as { readonly flows_url: string }).flows_url)
})
afterAll(async () => {
  server.kill("SIGTERM")
  await server.ended
  place.remove()
})

const hooks = async (...args: ReadonlyArray<string>) => place.nightjar("hooks", ...args)
const here = "https://here.example/"
const there = "https://there.example/events"
const events = ["started", "consent", "partial", "ended"].map((name) => `es-public-administration:${name}`)
const refused = (id: string, line: string, afterwards: string) => ({
  code: 2,
  stdout: "",
  stderr: `nightjar: ${line} [${id}]\n${afterwards}\n`,
})

describe("subscriptions", () => {
  it("are listed, made, never redirected, and removed address by address", async () => {
    const none = await hooks("list", "job.yaml")
    expect(none).toEqual({ code: 0, stdout: "No flow events are subscribed.\n", stderr: "" })
    const made = await place.json("hooks", "subscribe", "job.yaml", "https://here.example")
    expect(made).toEqual(events.map((event) => ({ event, base_url: here, enabled: true })))
    expect(await place.json("hooks", "subscribe", "job.yaml", here)).toEqual(made)
    expect(await hooks("subscribe", "job.yaml", there)).toEqual(
      refused(
        "hooks-taken",
        `another address receives these events already: ${events.join(", ")}`,
        "No subscription was changed. Remove that address first: `nightjar hooks list` shows it.",
      ),
    )
    expect(await hooks("remove", "job.yaml", there)).toEqual(
      refused(
        "hooks-unknown",
        "no subscription sends events to that address",
        "No subscription was changed. `nightjar hooks list` shows all of them.",
      ),
    )
    expect(await hooks("remove", "job.yaml", here)).toEqual({
      code: 0,
      stderr: "",
      stdout: "No flow events are subscribed.\n",
    })
  })

  it("are refused for an address that cannot be meant, before anything is sent", async () => {
    const address = refused(
      "hooks-address-invalid",
      "the address is not http or https, or has a user, a query or a fragment",
      "Nothing was sent. Give an address such as https://nightjar.example:8080/; the service removes any query.",
    )
    for (const url of ["ftp://here.example/", "https://me:pw@here.example/", `${here}?a=1`, "here"])
      expect(await hooks("subscribe", "job.yaml", url)).toEqual(address)
  })

  it("are out of reach with a wrong secret or without a service: exit code 6", async () => {
    jobFor("nobody", "http://127.0.0.1:1/flows")
    const wrong = await place.start(["hooks", "list", "job.yaml"], { APP: "wrong-secret" }).ended
    const nobody = await hooks("list", "nobody.yaml")
    expect([wrong.code, nobody.code, /wrong-secret/.test(wrong.stderr)]).toEqual([6, 6, false])
    expect(nobody.stderr).toContain("[service-unavailable]")
  })

  it("that the service refuses, or answers otherwise than the reference shows, end in words", async () => {
    const answers = new Map<string, readonly [number, unknown]>([["GET", [200, []]]])
    const odd = createServer((request, response) => {
      const [status, body] = answers.get(request.method ?? "") ?? [405, {}]
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
    })
    await new Promise<void>((resolve) => odd.listen(0, "127.0.0.1", resolve))
    jobFor("odd", `http://127.0.0.1:${(odd.address() as AddressInfo).port}/flows`)
    try {
      answers.set("POST", [422, { detail: [{ msg: "not this address", input: "x" }] }])
      expect(await hooks("subscribe", "odd.yaml", here)).toEqual(
        refused(
          "hooks-refused",
          "the service refuses the change (422: not this address)",
          "No subscription was changed. Correct the address or the events. `nightjar hooks list` shows what is " +
            "subscribed.",
        ),
      )
      answers.set("POST", [201, { any: "thing" }])
      expect((await hooks("subscribe", "odd.yaml", here)).code).toBe(0)
      answers.set("GET", [200, [{ event: 1 }]])
      const listed = await hooks("list", "odd.yaml")
      expect([listed.code, listed.stderr.includes("not a list of subscriptions")]).toEqual([6, true])
    } finally {
      odd.close()
    }
  })
})
