/** The proof of a deletion from landing alone: what the ledger says of it is not asked. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ResultsSource } from "../../src/contract/ResultsSource.ts"
import { Landing } from "../../src/landing/Landing.ts"
import type { BodyMeta } from "../../src/landing/Landing.ts"
import { LandingMemory } from "../../src/landing/LandingMemory.ts"
import { proveAgain } from "../../src/publishing/ProveAgain.ts"
import { answered, closed, drained, fold, intended, run_id, task_id } from "../execution/Lives.ts"
import { anId } from "../harness/Id.ts"

const state = fold([intended(1), answered(1, "accepted"), closed(1), drained(1)])
const task = state.tasks.get(task_id)!
const records = (count: number) => Array.from({ length: count }, () => ({ product: "p", sub_family: "a:b" }))
const results = (count: number, is_closed = true) => JSON.stringify({ is_closed, data: records(count) })

/** What a state and the newest bodies of two sessions prove of the first one's execution. */
const proved = (
  stateBody: string | undefined,
  bodies: ReadonlyArray<string>,
  session_id: string | undefined = "s-1",
  sources: ReadonlyArray<ResultsSource> = state.sources,
) =>
  Effect.gen(function* () {
    const landing = yield* Landing
    const land = (kind: BodyMeta["kind"], text: string) => {
      const meta: BodyMeta = {
        run_id,
        task_id,
        kind,
        http_status: 200,
        received_at: 0,
      }
      return Effect.map(landing.land(meta, Buffer.from(text)), (ref) => ({ ref, meta }))
    }
    const sessionOf = Effect.fnUntraced(function* (id: string, texts: ReadonlyArray<string>) {
      const landed = yield* Effect.forEach(texts, (text) => land("results", text))
      return {
        task,
        session_id: anId(id),
        execution_id: anId("e-1"),
        body: landed[0],
        bodies: landed,
        read_at: 0,
        is_closed: true,
      }
    })
    const stateOf = stateBody === undefined ? [] : [[anId("e-1"), yield* land("state", stateBody)] as const]
    const picture = {
      state: { ...state, sources },
      engines: [],
      frames: [],
      framesByTask: new Map(),
      stateOf: new Map(stateOf),
      sessions: [yield* sessionOf("s-9", [results(9)]), yield* sessionOf("s-1", bodies)],
    }
    return yield* proveAgain(picture, anId("e-1"), session_id === undefined ? undefined : anId(session_id))
  }).pipe(Effect.provide(LandingMemory.layer(LandingMemory.makeStore())))

const two = JSON.stringify({ products_count: { "a:b@p": 2 } })
const line = (landed: number) => ({ family: "a:b", counted: 2, landed })

describe("a repeated proof", () => {
  it.live("is complete if the landed bodies of its own session contain what the landed state counted", () =>
    Effect.gen(function* () {
      expect(yield* proved(two, [results(2)])).toEqual({
        isWhole: true,
        isCounted: true,
        families: [line(2)],
      })
      // Another session of the run holds nine; they are not this execution's.
      for (const [bodies, landed] of [
        [[results(1)], 1],
        [[results(2, false)], 2],
        [[], 0],
        [["no JSON"], 0],
      ] as const)
        expect(yield* proved(two, bodies)).toEqual({
          isWhole: false,
          isCounted: true,
          families: [line(landed)],
        })
    }),
  )

  it.live("uses every endpoint's body, and none if there was no session", () =>
    Effect.gen(function* () {
      expect((yield* proved(two, [results(0), results(2)])).isWhole).toBe(true)
      expect((yield* proved(two, [results(2)], "s-of-nobody")).isWhole).toBe(false)
      const none = JSON.stringify({ products_count: {} })
      expect(yield* proved(none, [], "s-of-nobody")).toEqual({
        isWhole: true,
        isCounted: true,
        families: [],
      })
    }),
  )

  it.live("is not given by a body that cannot be counted", () =>
    Effect.gen(function* () {
      // The job takes this endpoint at its word, so that a final answer needs no count.
      const trusted = state.sources.map((source) => ({ ...source, counts: "none" as const }))
      const broken: ReadonlyArray<ResultsSource> = trusted.map((source) => ({
        ...source,
        get records(): ResultsSource["records"] {
          throw new RangeError("quotes a body")
        },
      }))
      const isWhole = (sources: ReadonlyArray<ResultsSource>) =>
        Effect.map(proved("{}", [results(2)], "s-1", sources), (proof) => proof.isWhole)
      expect([yield* isWhole(trusted), yield* isWhole(broken), yield* isWhole(state.sources)]).toEqual([
        true,
        false,
        false,
      ])
    }),
  )

  it.live("does not exist if the state is missing, is not an object, or has no readable count", () =>
    Effect.gen(function* () {
      const unread = { isWhole: false, isCounted: false, families: [{ family: "a:b", landed: 2 }] }
      for (const body of [undefined, "no JSON", "[]", "{}", '{"products_count":{"a:b@p":"2"}}'])
        expect(yield* proved(body, [results(2)])).toEqual(unread)
    }),
  )
})
