/**
 * The public half of the embedded service's key, at a path of its own that the reference does not have
 * (section 5: key material and procedure are not shown). It requires no secret: a public key is for
 * everybody.
 */
import { HttpRouter, HttpServerResponse } from "effect/http"
import { encryptionKey } from "../executions/Encryption.ts"

export const EncryptionRoutes = {
  layer: HttpRouter.add("GET", "/api/sandbox/encryption-key", HttpServerResponse.jsonUnsafe(encryptionKey)),
}
