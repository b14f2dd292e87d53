/**
 * `npm run accounts -- --seeds N [--from K] [--nights M] [--verbose] [--json]`: campaigns of thirty virtual nights with
 * hostile start answers over shared accounts, on all cores. Prints what is wrong with each failing seed and the
 * command that replays it alone, and exits 1 if there is one.
 */
import { parseArgs } from "node:util"
import { rules, complaintsOf } from "./AccountsJudge.ts"
import { runAccountNights, type AccountsOutcome } from "./AccountNights.ts"
import { figuresLine } from "../promises/Figure.ts"
import { planAccounts } from "./AccountsPlan.ts"
import { countOf, trySeeds } from "./Seeds.ts"

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "100" },
    from: { type: "string", default: "1" },
    nights: { type: "string", default: "30" },
    verbose: { type: "boolean", default: false },
    /** The last line is the figures, for `npm run promises`. */
    json: { type: "boolean", default: false },
  },
})
const [from, seeds, nights] = [
  countOf("from", values.from),
  countOf("seeds", values.seeds),
  countOf("nights", values.nights),
]

const countsOf = ({ plan, starts, logins, processes, ends }: AccountsOutcome) => ({
  accounts: new Set(starts.map(({ account }) => account)).size,
  starts: starts.length,
  logins: logins.length,
  processes: processes.length,
  storms: plan.storms.length,
  held: ends.filter(({ reason }) => reason === "LOGIN_UNPROVEN").length,
})

const tried = await trySeeds({
  script: import.meta.url,
  from,
  seeds,
  step: 1,
  verbose: values.verbose,
  judge: (seed) => {
    const startedAt = performance.now()
    const outcome = runAccountNights(planAccounts(seed, nights))
    const complaints = complaintsOf(outcome)
    const counts = countsOf(outcome)
    const { accounts, starts, logins } = counts
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1)
    return {
      complaints: complaints.map(({ rule, what }) => `${rule}: ${what}`),
      broken: complaints.map(({ rule }) => rule),
      summary: `${accounts} accounts, ${starts} starts, ${logins} logins, hash ${outcome.eventsHash}, ${seconds} s`,
      counts,
    }
  },
  rules,
  brokenByStop: [],
  replay: (seed) =>
    `npm run accounts -- --seeds 1 --from ${seed}${nights === 30 ? "" : ` --nights ${nights}`}`,
})
if (tried !== undefined) {
  const { failed, failedOf, total, seconds } = tried
  console.log(
    `${seeds} campaigns of ${nights} nights from seed ${from} in ${seconds.toFixed(1)} s: ` +
      `${total("accounts")} accounts, ${total("starts")} starts, ${total("logins")} logins, ${total("processes")} processes, ` +
      `${total("storms")} storms, ${total("held")} tasks held`,
  )
  for (const [rule, count] of failedOf) console.log(`  ${rule}: ${count} of ${seeds}`)
  console.log(`${seeds - failed} passed, ${failed} failed`)
  if (values.json)
    console.log(figuresLine([{ of: "nights of shared accounts", tried: seeds * nights, failed }]))
}
