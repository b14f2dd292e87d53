/**
 * Which column could tell the records of one answer apart: a plain value that every record has and that no
 * two records of one answer share. Answers are looked at one after the other, so only one is in memory.
 */
import type { ColumnType } from "./ColumnData.ts"

/** Names that usually stay with what they name. */
const namesOfKeys = /(?:^|_)(?:id|iban|number|reference|code|pan|year|period)$/
/** A long text is no key. */
const textMax = 80

export class KeyCandidates {
  #group: string | undefined
  #size = 0
  readonly #seen = new Map<string, Set<string>>()
  readonly #repeated = new Set<string>()
  /** Whether any answer had two records to tell apart. */
  #compared = false

  /** `group` names the answer and the kind of record; records of one group come together. */
  add(group: string, record: Readonly<Record<string, unknown>>): void {
    if (group !== this.#group) {
      this.#group = group
      this.#size = 0
      this.#seen.clear()
    }
    this.#size++
    if (this.#size > 1) this.#compared = true
    for (const [name, value] of Object.entries(record)) {
      if (this.#repeated.has(name)) continue
      if ((typeof value !== "string" || value.length > textMax) && typeof value !== "number") {
        this.#repeated.add(name)
        continue
      }
      const values = this.#seen.get(name) ?? new Set()
      if (values.has(String(value))) this.#repeated.add(name)
      values.add(String(value))
      this.#seen.set(name, values)
    }
  }

  /** The best of these columns, or nothing where no answer had two records, or no column differs. */
  best(
    columns: ReadonlyArray<{ readonly name: string; readonly type: ColumnType; readonly required: boolean }>,
  ): string | undefined {
    if (!this.#compared) return undefined
    const able = columns.filter(
      ({ name, type, required }) =>
        required && ["VARCHAR", "INTEGER", "BIGINT"].includes(type) && !this.#repeated.has(name),
    )
    return (able.find(({ name }) => namesOfKeys.test(name)) ?? able[0])?.name
  }
}
