/**
 * A TLS server on the loopback interface whose certificate nobody vouches for, and the requests that it saw. The
 * key guards nothing: it was made for this file.
 */
import * as Https from "node:https"
import { Effect } from "effect"

export const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg5ItfCzqviIdGsETQ
UrweGSlfCjJ6V8QI3L0XVzccer2hRANCAARXnU1XLj7PkvixZ/WRD9T0FAuQCwGW
0n8ZWb1T8Esvc4JykkAn0CYiiEuCGldpsm4jcU0BmJppBKvGBixOSCpr
-----END PRIVATE KEY-----
`
export const cert = `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUbbmIBBJnYg7QuJztpxTfgq5yFWkwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMjA1MjE0NFoYDzIxMjYxMDI5
MDUyMTQ0WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAARXnU1XLj7PkvixZ/WRD9T0FAuQCwGW0n8ZWb1T8Esvc4JykkAn0CYi
iEuCGldpsm4jcU0BmJppBKvGBixOSCpro28wbTAdBgNVHQ4EFgQUfgds568GHhEt
omXxW6XiYgiGyFQwHwYDVR0jBBgwFoAUfgds568GHhEtomXxW6XiYgiGyFQwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIhALCECHIN6eG+RniSOT0E/9gDQa+2Q1zzqpenCtOsBhXfAiAK
vWJY93ZTuT68PlkN4Qr1fp/rfpEQYrveBXoaggc2ug==
-----END CERTIFICATE-----
`

export interface SelfSigned {
  readonly origin: string
  readonly requests: Array<{ readonly url: string; readonly headers: Readonly<Record<string, unknown>> }>
}

/** Answers every request with an empty list. */
export const selfSigned = Effect.map(
  Effect.acquireRelease(
    Effect.callback<{ server: Https.Server; requests: SelfSigned["requests"] }>((resume) => {
      const requests: SelfSigned["requests"] = []
      const server = Https.createServer({ key, cert }, ({ url = "", headers }, response) => {
        requests.push({ url, headers })
        response.writeHead(200, { "content-type": "application/json" }).end("[]")
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed({ server, requests })))
    }),
    ({ server }) =>
      Effect.callback<void>((resume) => {
        server.closeAllConnections()
        server.close(() => resume(Effect.void))
      }),
  ),
  ({ server, requests }): SelfSigned => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    return { origin: `https://127.0.0.1:${port}`, requests }
  },
)
