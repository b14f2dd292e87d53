/** What the behaviour words plan, and what the seed plans where they say nothing. */
import { describe, expect, it } from "@effect/vitest"
import { behaviourWords, planTimeline, readBehaviour } from "../../../src/sandbox/executions/Behaviour.ts"

const inputOf = (text: string, seed: number, interaction: boolean) => ({
  seed,
  application: "app",
  customer_id: "c-1",
  engine_reference: "sandbox-bank:website",
  ordinal: 0,
  behaviour: readBehaviour(text),
  interaction,
  timeoutMs: 1_200_000,
})

describe("the life of an execution", () => {
  it("is the same for the same seed, and different for another", () => {
    const [first, again, other] = [1, 1, 2].map((seed) => planTimeline(inputOf("ok", seed, false)))
    expect(again).toEqual(first)
    expect(other).not.toEqual(first)
  })

  it("takes minutes to hours if no word says otherwise, at most three in the queue, and seconds there with a person [limit 4]", () => {
    const lives = Array.from({ length: 500 }, (_, seed) => planTimeline(inputOf("ok", seed, false)))
    const queues = lives.map(({ queueMs }) => queueMs / 60_000)
    expect(Math.min(...queues)).toBeGreaterThanOrEqual(1)
    expect(Math.max(...queues)).toBeGreaterThan(120)
    expect(Math.max(...queues)).toBeLessThanOrEqual(180)
    const attended = Array.from({ length: 500 }, (_, seed) => planTimeline(inputOf("ok", seed, true)))
    expect(Math.max(...attended.map(({ queueMs }) => queueMs))).toBeLessThanOrEqual(60_000)
    expect(lives.every(({ warmMs, workMs, timeoutMs }) => warmMs + workMs < timeoutMs)).toBe(true)
  })
})

describe("the behaviour words", () => {
  it("all mean something except `ok`, with the arguments that the table shows", () => {
    const silent = behaviourWords.filter(({ word }) => {
      const example = word.replace("K-REASON", "2-NETWORK_ERROR").replace("REASON", "TIMEOUT")
      return Object.keys(readBehaviour(example.replace(/-(N|CODE)$/, "-12"))).length === 0
    })
    expect(silent.map(({ word }) => word)).toEqual(["ok"])
  })

  it("are read together, later ones winning; unknown words mean nothing", () => {
    expect(readBehaviour("queue-1+run-2.5+end-BLOCKED_USER+queue-3")).toEqual({
      queueMs: 3_000,
      runMs: 2_500,
      end: "BLOCKED_USER",
    })
    const meaningless = " ana.garcía end-NOTHING queue- queue--1 queue-1e9 __proto__-1 toString".split(" ")
    for (const text of meaningless) expect(readBehaviour(text)).toEqual({})
  })
})
