/**
 * Records every call that passes through an HttpClient and changes none; bodies are observed as their reader
 * consumes them.
 */
import { Clock, Effect, Stream } from "effect"
import { HttpClient } from "effect/http"
import type { HttpClientRequest, HttpClientResponse } from "effect/http"
import { given } from "../../base/Schemas.ts"
import { ownField } from "../../service/ReadJson.ts"
import { cleanBody } from "../../privacy/CleanBody.ts"
import { KnownSecrets } from "../../privacy/KnownSecrets.ts"
import { jsonOf, type Matcher, type RecordedBody, type RecordedCall } from "./Compare.ts"

/** Calls beyond this number are made but not kept; a run that polls one execution makes a few hundred. */
const callsMax = 5_000
const bodyBytesMax = 64 * 1024 * 1024
const headersKept = ["content-type", "retry-after", "allow"] as const

const utf8 = new TextDecoder()

const readBody = (bytes: Uint8Array): RecordedBody => {
  if (bytes.byteLength === 0) return { _tag: "Empty" }
  if (bytes.byteLength > bodyBytesMax) return { _tag: "Unread" }
  try {
    return { _tag: "Json", json: JSON.parse(utf8.decode(bytes)) }
  } catch {
    return { _tag: "Text", bytes: bytes.byteLength }
  }
}

const externalIdOf = ({ body }: Request): string | undefined => {
  if (body._tag !== "Uint8Array") return undefined
  const id = ownField(jsonOf({ body: readBody(body.body) }), "external_execution_id")
  return typeof id === "string" ? id : undefined
}

/** The same answer; its body is recorded when it is read. */
const watched = (response: Response, see: (bytes: Uint8Array) => void): Response => {
  const streamed = () => {
    const chunks: Array<Uint8Array> = []
    let bytes = 0
    return response.stream.pipe(
      Stream.tap((chunk) =>
        Effect.sync(() => {
          bytes += chunk.byteLength
          if (bytes <= bodyBytesMax) chunks.push(chunk)
          else chunks.length = 0
        }),
      ),
      Stream.onEnd(Effect.sync(() => (bytes <= bodyBytesMax ? see(Buffer.concat(chunks)) : undefined))),
    )
  }
  const buffered = () =>
    Effect.tap(response.arrayBuffer, (buffer) => Effect.sync(() => see(new Uint8Array(buffer))))
  const read = { arrayBuffer: { get: buffered }, stream: { get: streamed } }
  return Object.create(response, read) as Response
}

type Request = HttpClientRequest.HttpClientRequest
type Response = HttpClientResponse.HttpClientResponse

export const makeRecorder = (match: Matcher) => {
  const calls: Array<RecordedCall> = []
  let unkept = 0
  let firstAtMs: number | undefined
  const openCall = (request: Request, sentAtMs: number): RecordedCall => {
    firstAtMs ??= sentAtMs
    const external_execution_id = request.method === "POST" ? externalIdOf(request) : undefined
    const call: RecordedCall = {
      number: calls.length + unkept + 1,
      ...match(request.method, request.url),
      ...given({ external_execution_id }),
      sentAtMs: sentAtMs - firstAtMs,
      tookMs: 0,
      http_status: undefined,
      headers: {},
      body: { _tag: "Unread" },
    }
    if (calls.length < callsMax) calls.push(call)
    else unkept += 1
    return call
  }
  const send = Effect.fnUntraced(function* (client: HttpClient.HttpClient, request: Request) {
    const sentAtMs = yield* Clock.currentTimeMillis
    const call = openCall(request, sentAtMs)
    const response = yield* client.execute(request)
    call.tookMs = (yield* Clock.currentTimeMillis) - sentAtMs
    call.http_status = response.status
    const known = yield* KnownSecrets
    call.headers = Object.fromEntries(
      headersKept.flatMap((name) => {
        const value = response.headers[name]
        return value === undefined ? [] : [[name, known.clean(value, "free").slice(0, 100)]]
      }),
    )
    if (call.route.name === "downloadAttachment") return response
    return watched(response, (bytes) => (call.body = readBody(cleanBody(bytes, known))))
  })
  return {
    calls: calls as ReadonlyArray<RecordedCall>,
    /** How many calls were made but not kept. */
    unkept: () => unkept,
    through: (client: HttpClient.HttpClient) =>
      HttpClient.transform(client, (_, request) => send(client, request)),
  }
}
export type Recorder = ReturnType<typeof makeRecorder>
