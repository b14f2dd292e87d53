/**
 * What a benchmark answers: figures, each beside what it is measured against. An absolute number says little on
 * another machine, so a figure has a peer measured in the same run (the bare library, the bare server), a limit
 * that the project promises, or both.
 */

export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** The same work without what is measured here, in the same unit. */
  readonly peer?: { readonly name: string; readonly value: number }
  /** What the project promises; a figure on the wrong side of it fails the benchmark. */
  readonly limit?: { readonly is: "at most" | "at least"; readonly value: number }
  /** What it should be one day, in words: it informs, and fails nothing. */
  readonly aim?: string
}

export interface Measured {
  readonly figures: ReadonlyArray<Figure>
  /** What should be true of the work itself and is not: fast and wrong is no result. */
  readonly complaints: ReadonlyArray<string>
}

export interface BenchOptions {
  readonly sample: boolean
  /** Of nights alone: how many in each. */
  readonly customers: string | undefined
  /** Of telemetry alone: how many pairs of nights. */
  readonly pairs: string | undefined
}

export interface Benchmark {
  readonly name: string
  /** One line for the list of benchmarks. */
  readonly about: string
  /** A sample is a few seconds long: it shows that the benchmark works, and its figures are rough. */
  readonly run: (options: BenchOptions) => Promise<Measured>
}

const amount = (value: number): string =>
  value >= 1_000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)))

export const isBroken = ({ value, limit }: Figure): boolean =>
  limit !== undefined && !(limit.is === "at most" ? value <= limit.value : value >= limit.value)

/** One line: figure, peer and ratio, limit and share of it, verdict. */
export const figureLine = (figure: Figure): string => {
  const { name, value, unit, peer, limit, aim } = figure
  const parts = [`${name.padEnd(34)} ${`${amount(value)} ${unit}`.padEnd(20)}`]
  if (peer !== undefined)
    parts.push(`${amount(value / peer.value)} x ${peer.name} (${amount(peer.value)} ${unit})`)
  if (limit !== undefined) {
    const share = `${amount(value / limit.value)} of the limit: ${limit.is} ${amount(limit.value)} ${unit}`
    parts.push(`${isBroken(figure) ? "FAIL" : "pass"}, ${share}`)
  }
  if (aim !== undefined) parts.push(`aim: ${aim}`)
  return parts.join("  ").trimEnd()
}

export const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
