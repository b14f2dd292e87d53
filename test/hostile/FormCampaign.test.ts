/**
 * A small sample of the campaign of hostile forms.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FormProcess } from "../../src/client/FormProcess.ts"
import { runCampaign } from "./FormCampaign.ts"
import { hostileEngine } from "./HostileForms.ts"

describe("hostile engine forms", () => {
  it.live("affect only their own engine, within the limits of the checker's thread", () =>
    Effect.gen(function* () {
      const { answers, complaints } = yield* runCampaign({ count: 25, from: 1 })
      assert.deepStrictEqual(complaints, [])
      const kinds = [...answers.keys()].map((answer) => answer.replace(/[:,].*/, ""))
      assert.deepStrictEqual([...new Set(kinds)].toSorted(), ["unusable", "usable"])
    }).pipe(Effect.provide(FormProcess.layer())),
  )

  it("are the same for the same seed", () => {
    assert.deepStrictEqual(hostileEngine(7), hostileEngine(7))
    assert.notDeepEqual(hostileEngine(7), hostileEngine(8))
  })
})
