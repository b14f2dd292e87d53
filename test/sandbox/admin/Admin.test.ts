/** The admin page and its truth. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HttpClient } from "effect/http"
import { Sandbox } from "../../../src/sandbox/server/Sandbox.ts"
import { SandboxClient } from "../../../src/sandbox/server/SandboxRoutes.ts"
import { adminSuite } from "./AdminSuite.ts"

describe("the truth and its page", adminSuite)

describe("the admin page", () => {
  it.effect("tells the browser to load and run nothing", () =>
    Effect.gen(function* () {
      const { headers } = yield* HttpClient.get(SandboxClient.base_url.replace(/api$/, "admin"))
      expect([headers["content-security-policy"], headers["x-content-type-options"]]).toEqual([
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'",
        "nosniff",
      ])
    }).pipe(Effect.provide(SandboxClient.layer.pipe(Layer.provide(Sandbox.layer({ seed: 7 }))))),
  )
})
