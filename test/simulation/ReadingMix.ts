/**
 * How the service of a simulated night reads the places where the reference leaves room, and which endpoints the
 * job's results are read from: drawn from the seed, so that no promise can rest on one reading.
 */
import { builtInSources } from "../../src/service/FlowResults.ts"
import type { ResultsSource } from "../../src/service/FlowResults.ts"
import { features } from "../../src/service/Vocabulary.ts"
import { familyOf } from "../../src/sandbox/executions/PlanResults.ts"
import { Reading, todaysReading } from "../../src/sandbox/state/Reading.ts"
import { pick } from "./SimulatedJob.ts"

export interface ReadingMix {
  readonly reading: Reading
  readonly sources: ReadonlyArray<ResultsSource>
}

const choices = Object.entries(Reading.fields).map(([key, field]) => [key, field.schema.literals] as const)

/** The groups under which the embedded service serves its own kinds of results. */
const groups = [
  ...new Set(
    features.flatMap((code) => familyOf(code)?.kinds.map((kind) => kind.split(":")[0] ?? kind) ?? []),
  ),
]

const kindSource = (group: string): ResultsSource => ({
  name: group,
  enabled: true,
  api: "base_url",
  path: `/executions/results/{execution_id}/${group}/v1/records`,
  families: [`${group}:*`],
  records: ["records"],
  final: "is_final",
  counts: "sub_family",
  nothing: [404],
  attachments: false,
})

/** Some nights have today's reading, some one of their own, and the others several at once. */
export const mixReadings = (random: () => number): ReadingMix => {
  const kind = random()
  const rate = kind < 0.3 ? 0 : kind < 0.6 ? 0.06 : 0.25
  const drawn = choices.flatMap(([key, values]) => (random() < rate ? [[key, pick(random, values)]] : []))
  const reading: Reading = Object.fromEntries(drawn)
  const { result_kinds, products_count, flow_api } = { ...todaysReading, ...reading }
  const kinds = result_kinds === "present" && random() < 0.7 ? groups.map(kindSource) : []
  // What an engineer would decide who was told that this service counts nothing.
  const counts = products_count !== "shown" && random() < 0.4 ? "none" : "sub_family"
  const enabled = flow_api === "present" || random() < 0.5
  const builtIn = builtInSources.map((source) =>
    source.name === "flow_results" ? { ...source, counts, enabled } : source,
  )
  return { reading, sources: [...builtIn, ...kinds] as ReadonlyArray<ResultsSource> }
}
