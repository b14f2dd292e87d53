/**
 * Standing sessions without a script: the seed decides what happens in them, so that a run can have as many
 * different ones as it likes. Most complete; some are still being read at the first read.
 */
import { seeded } from "../state/Seeded.ts"
import type { Draw } from "../state/Seeded.ts"
import type { ScriptStep, StandingScript } from "./StandingScripts.ts"

const sources = [
  "es-tax-agency:website",
  "es-social-security:website",
  "es-university:website",
  "es-traffic:website",
] as const

const drawSources = (draw: Draw): ReadonlyArray<string> => {
  const first = draw.int(0, sources.length - 1)
  return Array.from({ length: draw.int(1, 3) }, (_, index) => sources[(first + index) % sources.length] ?? "")
}

const connections = (draw: Draw, from: number, ends: string): ReadonlyArray<ScriptStep> =>
  drawSources(draw).map((engine, index) => {
    const late = draw.chance(0.3) ? `+late-${draw.int(5, 300)}` : ""
    const documents = draw.chance(0.2) ? `+attach-${draw.int(1, 3)}` : ""
    const words = `queue-${draw.int(0, 20)}+run-${draw.int(10, 400)}${late}${documents}${ends}`
    return [from + index * 15, "connect", engine, words] as const
  })

interface Kind {
  readonly name: string
  readonly meaning: string
  /** Out of a hundred. */
  readonly weight: number
  readonly steps: (draw: Draw) => ReadonlyArray<ScriptStep>
}

/** Started this long before the first read, and left before every source of a slow one is done. */
const walked = (draw: Draw, ago: number, ends = ""): ReadonlyArray<ScriptStep> => [
  [-ago, "start"],
  [-ago + 20, "consent"],
  ...connections(draw, -ago + 40, ends),
  [-ago + 100, "leave"],
]

const kinds: ReadonlyArray<Kind> = [
  {
    name: "drawn_completed",
    meaning: "completed",
    weight: 60,
    steps: (draw) => walked(draw, draw.int(900, 90_000)),
  },
  {
    name: "drawn_partial",
    meaning: "partial, then final",
    weight: 20,
    steps: (draw) => walked(draw, draw.int(110, 200)),
  },
  { name: "drawn_unstarted", meaning: "never started", weight: 4, steps: () => [] },
  {
    name: "drawn_failed",
    meaning: "failed",
    weight: 6,
    steps: (draw) =>
      walked(draw, draw.int(900, 9_000), `+end-${draw.pick(["FAILED", "BLOCKED_USER", "TIMEOUT"])}`),
  },
  {
    name: "drawn_cancelled",
    meaning: "cancelled by the customer",
    weight: 5,
    steps: (draw) => {
      const ago = draw.int(300, 9_000)
      return [
        [-ago, "start"],
        [-ago + 20, "consent"],
        ...connections(draw, -ago + 40, ""),
        [-ago + 100, "cancel"],
      ]
    },
  },
  {
    name: "drawn_timed_out",
    meaning: "timed out",
    weight: 5,
    steps: (draw) => [[-draw.int(3_600, 90_000), "start"]],
  },
]

export const drawScript = (seed: number, number: number): StandingScript => {
  const draw = seeded("standing-session", seed, number)
  let left = draw.unit() * kinds.reduce((total, { weight }) => total + weight, 0)
  const kind = kinds.find(({ weight }) => (left -= weight) < 0)
  const { name, meaning, steps } = kind ?? {
    name: "drawn_unstarted",
    meaning: "never started",
    steps: () => [],
  }
  const words = draw.chance(0.1) ? "company" : ""
  return { name, meaning, words, steps: steps(draw) }
}
