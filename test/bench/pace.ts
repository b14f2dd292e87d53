/**
 * How long a night of many small calls takes after two early 429s, and how often hosts with a limit complain: the
 * demand and the hosts of the tests, in virtual time, so that the figures are the same on every machine.
 */
import {
  callers,
  evenly,
  executions,
  play,
  shareRefused,
  takenPerSecond,
  twoRefused,
} from "../client/PacedHost.ts"
import type { Demand, Host } from "../client/PacedHost.ts"
import type { Benchmark, Figure } from "./Figure.ts"

const limited: Host = { takes: () => 20, retryAfterMs: 1_000 }
const hosts: ReadonlyArray<readonly [string, Host, Demand]> = [
  ["20 a second", limited, callers(100)],
  ["20 a second, bursts", limited, callers(100, 20)],
  ["1,200 a minute", { ...limited, takes: () => 1_200, windowMs: 60_000 }, callers(100)],
]
const fast: Host = { takes: () => 500, retryAfterMs: 1_000 }
const nights: ReadonlyArray<readonly [string, Demand]> = [
  ["9,000 requests", evenly(9_000, 474)],
  ["1,500 executions", executions(1_500)],
]

const nightFigures = (name: string, demand: Demand): ReadonlyArray<Figure> => {
  const peer = { name: "undisturbed", value: play(fast, demand).endedMs / 1_000 }
  return [0, 200].map((fromMs) => ({
    name: `${name}, two 429s at ${fromMs} ms`,
    value: play({ ...fast, says: twoRefused(fromMs) }, demand).endedMs / 1_000,
    unit: "s",
    peer,
    limit: { is: "at most", value: 1.1 * peer.value },
  }))
}

const hostFigures = (
  seconds: number,
  [name, host, demand]: (typeof hosts)[number],
): ReadonlyArray<Figure> => {
  const seen = play(host, demand, { forMs: 1_000 * seconds })
  return [
    {
      name: `${name}: complaints`,
      value: 100 * shareRefused(seen),
      unit: "%",
      limit: { is: "at most", value: 3 },
    },
    { name: `${name}: taken`, value: takenPerSecond(seen, 0, seconds), unit: "/s" },
  ]
}

export const pace: Benchmark = {
  name: "pace",
  about: "How a host's complaints slow down a night, and how often it complains (virtual time)",
  run: ({ sample }) =>
    Promise.resolve({
      figures: [
        ...nights.flatMap(([name, demand]) => nightFigures(name, demand)),
        ...hosts.flatMap((host) => hostFigures(sample ? 1_200 : 3_600, host)),
      ],
      complaints: [],
    }),
}
