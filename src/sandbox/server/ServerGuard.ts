/**
 * What a server needs before any route and the service in this process does not: a caller that named this
 * machine, and a body of limited size. A page in somebody's browser can make a name of its own point to
 * 127.0.0.1 (DNS rebinding), but it cannot make the browser send a Host other than that name.
 */
import { ByteSize, Duration, Effect } from "effect"
import {
  HttpIncomingMessage,
  HttpMethod,
  HttpRouter,
  HttpServerRequest,
  HttpServerResponse,
} from "effect/http"
import { isLoopback } from "../../base/Text.ts"

/** Far above any start with its certificates, far below what fills a machine's memory. */
const bodyBytesMax = 4_000_000

/** A caller that sends slowly holds a connection at most this long. */
export const serverLimits = {
  headersTimeout: Duration.seconds(20),
  requestTimeout: Duration.seconds(60),
} as const

/** The host of a `Host` header without its port; an HTTP/1.0 caller need not send one. */
const namesThisMachine = (header: string | undefined): boolean =>
  header === undefined || isLoopback(header.toLowerCase().replace(/:\d{1,5}$/, ""))

/** The rest of the body is not awaited. */
const refuse = (status: 413 | 421, detail: string) =>
  HttpServerResponse.jsonUnsafe({ detail }, { status, headers: { connection: "close" } })

const misdirected = refuse(
  421,
  "this server answers to localhost and 127.0.0.1 only, unless --host says more",
)
const tooLarge = refuse(413, `the body is larger than ${bodyBytesMax / 1e6} MB`)

/** Middleware for every route of a server that is bound to `host`. */
export const ServerGuard = {
  layer: (host: string) => {
    const isLocal = isLoopback(host === "::1" ? "[::1]" : host)
    return HttpRouter.middleware(
      (answer) =>
        Effect.gen(function* () {
          const request = yield* HttpServerRequest.HttpServerRequest
          if (isLocal && !namesThisMachine(request.headers["host"])) return misdirected
          if (!HttpMethod.hasBody(request.method)) return yield* answer
          if (Number(request.headers["content-length"] ?? 0) > bodyBytesMax) return tooLarge
          const read = yield* request.arrayBuffer.pipe(
            Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(bodyBytesMax)),
            Effect.option,
          )
          return read._tag === "None" ? tooLarge : yield* answer
        }),
      { global: true },
    )
  },
}
