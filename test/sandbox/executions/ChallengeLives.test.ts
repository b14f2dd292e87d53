/**
 * Lives with a challenge as a property (sections 2.4 and 3.2): whoever asks, whatever is answered and
 * whenever, time only moves forward, a run closes at most once, and a feature that still waits for its
 * answer has nothing.
 */
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { planTimeline, readBehaviour } from "../../../src/sandbox/executions/Behaviour.ts"
import { isClosedPhase, lifeOf, momentOf } from "../../../src/sandbox/state/Timeline.ts"
import type { ChallengeAnswer, Phase } from "../../../src/sandbox/state/Timeline.ts"

const asked = ["accounts_read", "cards_read"]
const life = fc.record({
  run: fc.integer({ min: 0, max: 2_000 }),
  async: fc.integer({ min: 0, max: 500 }),
  kind: fc.constantFrom("challenge-1", "input-1"),
  by: fc.constantFrom("", "+by-cards_read", "+by-loans_read"),
  cancel: fc.constantFrom("", "+cancel-5", "+cancel-90"),
  interaction: fc.boolean(),
  answers: fc.array(
    fc.record({
      after: fc.integer({ min: 0, max: 59_999 }),
      right: fc.boolean(),
      fault: fc.constantFrom(undefined, "form" as const, "encryption" as const),
    }),
    { maxLength: 4 },
  ),
  stop: fc.option(fc.nat({ max: 3_000_000 })),
})

/** Lays each answer upon the challenge that is pending then, as the service does. */
const answeredLife = (
  timeline: ReturnType<typeof planTimeline>,
  said: ReadonlyArray<{
    readonly after: number
    readonly right: boolean
    readonly fault: "form" | "encryption" | undefined
  }>,
): ReadonlyArray<ChallengeAnswer> => {
  const answers: Array<ChallengeAnswer> = []
  for (const { after, right, fault } of said) {
    const pending = lifeOf(timeline, 0, answers, undefined).findLast(
      ({ challenge }) => challenge !== undefined,
    )
    if (pending?.challenge?.wrongAnswers !== answers.length) break
    const at = pending.from + after
    const last = pending.challenge.expires
    if (at >= last) break
    answers.push({ at, right: right && fault === undefined, ...(fault === undefined ? {} : { fault }) })
  }
  return answers
}

const held = ({ heldBy, challenge }: Phase) => heldBy !== undefined || challenge !== undefined

it("goes forward, closes once, and holds a feature back until its challenge is answered correctly", () => {
  fc.assert(
    fc.property(life, ({ run, async, kind, by, cancel, interaction, answers: said, stop }) => {
      const words = `queue-1+run-${run}+async-${async}+${kind}+expire-60${by}${cancel}`
      const timeline = planTimeline({
        seed: 7,
        application: "app",
        customer_id: "c-1",
        engine_reference: "sandbox-bank:website",
        ordinal: 0,
        behaviour: readBehaviour(words),
        interaction,
        timeoutMs: 1_200_000,
        asked,
      })
      const answers = cancel === "" ? answeredLife(timeline, said) : []
      const end = stop === null ? undefined : { at: stop, reason: "CLIENT_CANCELLED" as const }
      const [first, ...rest] = lifeOf(timeline, 0, answers, end)
      if (first === undefined) throw new Error("a life without a phase")
      const phases = [first, ...rest] as const
      const times = phases.map(({ from }) => from)
      expect(times).toEqual(times.toSorted((a, b) => a - b))
      expect(phases.map(isClosedPhase)).toEqual(phases.map((_, index) => index === phases.length - 1))
      const { phase, activeMs } = momentOf(phases, Number.MAX_SAFE_INTEGER)
      expect(activeMs).toBeLessThanOrEqual(1_200_000)
      if (by === "+by-loans_read") expect(phases.filter(held)).toEqual([])
      const right = answers.some((answer) => answer.right)
      const good = phase.status_reason === "COMPLETED"
      if (good && by !== "+by-loans_read") expect([right, phase.heldBy]).toEqual([true, undefined])
      if (phase.status_reason === "INCORRECT_MFA") {
        expect(phase.authentication_status).toBe(by === "" ? "INCORRECT_MFA" : "AUTH_OK")
      }
    }),
    { numRuns: 100 },
  )
})
