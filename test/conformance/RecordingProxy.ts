/**
 * A proxy that changes nothing and hands over every exchange: what a client sent and what the service
 * answered, byte for byte, once both are whole. An exchange that either side breaks off is no exchange.
 */
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from "node:http"
import type { Exchange } from "./TrafficCheck.ts"

export interface RecordingProxy {
  readonly origin: string
  readonly close: () => Promise<void>
}

const wholeBody = async (message: IncomingMessage): Promise<Buffer> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of message) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}

const headersOf = (message: IncomingMessage): Readonly<Record<string, string | Array<string>>> =>
  Object.fromEntries(
    Object.entries(message.headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )

const pass = async (
  target: URL,
  request: IncomingMessage,
  response: ServerResponse,
  record: (exchange: Exchange) => void,
): Promise<void> => {
  const { method = "GET", url = "/" } = request
  const requestBody = await wholeBody(request)
  const headers = { ...headersOf(request), host: target.host }
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  forward({ host: target.hostname, port: target.port, method, path: url, headers }, resolve)
    .on("error", reject)
    .end(requestBody)
  const answer = await promise
  const responseBody = await wholeBody(answer)
  const status = answer.statusCode ?? 0
  record({
    method,
    url,
    requestHeaders: headersOf(request),
    requestBody: requestBody.toString(),
    status,
    contentType: answer.headers["content-type"],
    responseBody: responseBody.toString(),
  })
  response.writeHead(status, answer.rawHeaders)
  response.end(responseBody)
}

export const startProxy = async (
  targetOrigin: string,
  record: (exchange: Exchange) => void,
): Promise<RecordingProxy> => {
  const target = new URL(targetOrigin)
  const server = createServer((request, response) => {
    pass(target, request, response, record).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  if (typeof address !== "object" || address === null) throw new Error("the proxy has no address")
  return {
    origin: `http://127.0.0.1:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
