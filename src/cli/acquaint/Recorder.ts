/**
 * Records every call that passes through an HttpClient and changes none; bodies are observed as their reader
 * consumes them. It can add one call, on request: a start sent again while the first is open (4.1: a matching
 * run answers 409 and nothing is created).
 */
import { Clock, Effect, Stream } from "effect"
import { Headers, HttpClient, HttpClientRequest } from "effect/http"
import type { HttpClientError, HttpClientResponse } from "effect/http"
import { given } from "../../base/Schemas.ts"
import { ExecutionApi } from "../../service/Api.ts"
import { ownField } from "../../service/ReadJson.ts"
import { cleanBody } from "../../privacy/CleanBody.ts"
import { KnownSecrets } from "../../privacy/KnownSecrets.ts"
import { jsonOf, type Matcher, type RecordedBody, type RecordedCall } from "./Compare.ts"

/** Calls beyond this number are made but not kept; a run that polls one execution makes a few hundred. */
const callsMax = 5_000
const bodyBytesMax = 64 * 1024 * 1024
const headersKept = ["content-type", "retry-after", "allow"] as const

/** Longer than a service needs to refuse. */
const extraTimeout = "60 seconds"

const { startExecution, readExecution, abortExecution } = ExecutionApi.groups.executions.endpoints

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

/** Another URL of the same execution API. */
const urlOf = (startUrl: string, path: string, execution_id: string): string =>
  startUrl.replace(startExecution.path, "") + path.replace(":execution_id", encodeURIComponent(execution_id))

/** A request without a body, with the credentials of another one. */
const bodiless = (method: "GET" | "DELETE", url: string, { headers }: Request) =>
  HttpClientRequest.make(method)(url, {
    headers: Headers.remove(Headers.remove(headers, "content-type"), "content-length"),
  })

type Client = HttpClient.HttpClient
type Request = HttpClientRequest.HttpClientRequest
type Response = HttpClientResponse.HttpClientResponse
type Failed = HttpClientError.HttpClientError

interface Recording {
  readonly match: Matcher
  readonly calls: Array<RecordedCall>
  unkept: number
  firstAtMs: number | undefined
  /** No further probe is sent. */
  probed: boolean
}

const openCall = (recording: Recording, request: Request, sentAtMs: number, probe: boolean) => {
  const { calls } = recording
  recording.firstAtMs ??= sentAtMs
  const external_execution_id = request.method === "POST" ? externalIdOf(request) : undefined
  const call: RecordedCall = {
    number: calls.length + recording.unkept + 1,
    ...recording.match(request.method, request.url),
    ...given({ external_execution_id }),
    probe,
    sentAtMs: sentAtMs - recording.firstAtMs,
    tookMs: 0,
    http_status: undefined,
    headers: {},
    body: { _tag: "Unread" },
  }
  if (calls.length < callsMax) calls.push(call)
  else recording.unkept += 1
  return call
}

const send = (
  recording: Recording,
  client: Client,
  request: Request,
  probe: boolean,
): Effect.Effect<Response, Failed> =>
  Effect.gen(function* () {
    const sentAtMs = yield* Clock.currentTimeMillis
    const call = openCall(recording, request, sentAtMs, probe)
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

const idIn = (answer: Response) =>
  Effect.map(answer.arrayBuffer, (buffer) =>
    ownField(jsonOf({ body: readBody(new Uint8Array(buffer)) }), "execution_id"),
  )

/** The same start once more while the first is open. The run must not see any of it. */
const probeConflict = Effect.fnUntraced(function* (
  recording: Recording,
  client: Client,
  request: Request,
  first: Response,
) {
  recording.probed = true
  const created = yield* idIn(first)
  if (typeof created !== "string") return
  const look = bodiless("GET", urlOf(request.url, readExecution.path, created), request)
  const state = yield* send(recording, client, look, false)
  yield* state.arrayBuffer
  // After a run has ended, the same start would be a new one, with a second login.
  if (state.status !== 202) return
  const second = yield* send(recording, client, request, true)
  const other = yield* idIn(second)
  if (second.status !== 202 || typeof other !== "string" || other === created) return
  // The service broke its rule and is about to log in again: abort this execution before it can.
  const abort = bodiless("DELETE", urlOf(request.url, abortExecution.path, other), request)
  yield* (yield* send(recording, client, abort, true)).arrayBuffer
})

const isAcceptedStart = (request: Request, response: Response): boolean =>
  request.method === "POST" && request.url.endsWith(startExecution.path) && response.status === 202

export const makeRecorder = (options: { readonly match: Matcher; readonly probeConflict: boolean }) => {
  const { match, probeConflict: probes } = options
  const recording: Recording = { match, calls: [], unkept: 0, firstAtMs: undefined, probed: !probes }
  return {
    calls: recording.calls as ReadonlyArray<RecordedCall>,
    /** How many calls were made but not kept. */
    unkept: () => recording.unkept,
    through: (client: Client): Client =>
      HttpClient.transform(client, (_, request) =>
        Effect.tap(send(recording, client, request, false), (response) =>
          recording.probed || !isAcceptedStart(request, response)
            ? Effect.void
            : probeConflict(recording, client, request, response).pipe(
                Effect.timeout(extraTimeout),
                Effect.ignore,
              ),
        ),
      ),
  }
}
export type Recorder = ReturnType<typeof makeRecorder>
