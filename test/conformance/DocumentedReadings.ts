/**
 * Readings of the reference whose every answer stands in the OpenAPI document, drawn from a seed: what lies outside of
 * it (a gateway's page, a 405, a count of another type) is tried by the simulation and the acceptance nights.
 */
import { readingChoices } from "../../src/sandbox/state/Reading.ts"
import type { Reading } from "../../src/sandbox/state/Reading.ts"
import { seeded } from "../simulation/NightPlan.ts"

/** Values that the document has no place for. */
const outside: Readonly<Record<string, ReadonlyArray<string>>> = {
  products_count: ["absent", "null", "text", "float", "list"],
  flow_api: ["absent", "forbidden"],
  flow_error_body: ["code", "html", "empty"],
  tokenized_body: ["flat", "refused", "absent"],
  head: ["not_allowed"],
  result_kinds: ["present"],
}

/** About half of the places are read in another way than today's. */
export const documentedReading = (seed: number): Reading => {
  const random = seeded(seed ^ 0x51ed270b)
  return Object.fromEntries(
    readingChoices.flatMap(({ key, values }) => {
      const inside = values.filter((value) => outside[key]?.includes(value) !== true)
      const drawn = inside[Math.floor(random() * inside.length)]
      return drawn === undefined || random() < 0.3 ? [] : [[key, drawn]]
    }),
  )
}
