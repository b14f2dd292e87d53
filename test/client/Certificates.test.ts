/** Who may be sent the application secret over TLS, against a real server that nobody vouches for. */
import { afterEach, describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import { Service } from "../../src/client/Service.ts"
import { secret, serviceAt } from "./FakeService.ts"
import { selfSigned } from "./SelfSigned.ts"
import { live } from "../harness/Steps.ts"

const listAt = (origin: string, acceptAnyCertificate?: boolean) =>
  Effect.provide(
    Effect.flatMap(Service, (service) => Effect.result(service.listEngines)),
    serviceAt(origin, {}, acceptAnyCertificate === undefined ? {} : { acceptAnyCertificate }),
  )

describe("an untrusted certificate", () => {
  afterEach(() => vi.unstubAllEnvs())

  it.live.each(["1", "0"])("gets no request if NODE_TLS_REJECT_UNAUTHORIZED is %s", (environment) =>
    Effect.scoped(
      Effect.gen(function* () {
        vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", environment)
        const { origin, requests } = yield* selfSigned
        const answer = yield* listAt(origin)
        expect(answer).toMatchObject({
          failure: {
            _tag: "NotSent",
            message: "listEngines: no connection to the service (DEPTH_ZERO_SELF_SIGNED_CERT)",
          },
        })
        expect(requests).toEqual([])
      }),
    ),
  )

  live("is accepted only if the connections are configured so", function* () {
    const { origin, requests } = yield* selfSigned
    const answer = yield* listAt(origin, true)
    expect(answer._tag).toBe("Success")
    expect(requests.map(({ headers }) => headers["x-app-secret"])).toEqual([secret])
  })
})
