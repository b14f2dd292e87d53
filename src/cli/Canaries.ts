/**
 * The secrets that `doctor --canary` plants, made up anew each time. In the middle of each are characters
 * that nothing contains by chance and that survive every escaping: few needles find it in any spelling.
 */
import { Effect, Random } from "effect"

export interface Canary {
  /** As a sentence names it. */
  readonly is: string
  readonly value: string
  /** The part that is looked for: letters and digits only. */
  readonly core: string
}

const hexDigits = (length: number) =>
  Effect.map(Effect.replicateEffect(Random.nextIntBetween(0, 15), length), (digits) =>
    digits.map((digit) => digit.toString(16)).join(""),
  )

const coreLength = 24
/** Signs that JSON, HTML, addresses and base64 spell differently. */
const password = (core: string): string => `Ca é"<&+/${core}~'>?ü`

export const makeCanaries = Effect.gen(function* () {
  const [app, good, bad, kept] = yield* Effect.replicateEffect(hexDigits(coreLength), 4)
  const key = yield* hexDigits(64)
  const made = (is: string, core = "", value = core): Canary => ({ is, value, core })
  return {
    application: made("the application secret", app, `ca+/${app}"&`),
    storeKey: made("the key of the token store", key),
    password: made("a password", good, password(good ?? "")),
    rejected: made("the password of a rejected login", bad, password(bad ?? "")),
    /** No secret: it stands in a record, and has to be found where records are kept. */
    control: made("the control", kept, `kept ${kept}`),
  }
})
export type Canaries = Effect.Success<typeof makeCanaries>

/** What the service issued is as secret as a login; of its form nothing is known. */
export const issuedCanary = (is: string, value: string): Canary => {
  const [longest = ""] = (value.match(/[A-Za-z0-9]+/g) ?? []).toSorted((a, b) => b.length - a.length)
  return { is, value, core: longest.length >= coreLength / 2 ? longest : value }
}

/** As a hostile service spells it. */
export const spelled = ({ value }: Canary): string => {
  const bytes = Buffer.from(value)
  return [
    value,
    JSON.stringify(value),
    encodeURIComponent(value),
    bytes.toString("base64"),
    bytes.toString("base64url"),
    bytes.toString("hex"),
    Buffer.from(`somebody:${value}`).toString("base64"),
    `https://somebody:${encodeURIComponent(value)}@example.org/`,
  ].join(" ")
}

/** The characters of base64 that depend only on the core if `skipped` other bytes come before it. */
const inBase64 = (core: string, skipped: number): string => {
  const bytes = skipped + Buffer.byteLength(core)
  return Buffer.concat([Buffer.alloc(skipped), Buffer.from(core)])
    .toString("base64")
    .slice(Math.ceil((skipped * 4) / 3), Math.floor((bytes * 4) / 3))
}

const needlesOf = ({ core }: Canary): ReadonlyArray<string> => {
  const hex = Buffer.from(core).toString("hex")
  return [core, core.toUpperCase(), hex, hex.toUpperCase(), ...[0, 1, 2].map((n) => inBase64(core, n))]
}

/** Something that was written, shown or sent, as Latin-1, so that no byte is lost. */
export interface Written {
  readonly where: string
  readonly text: string
}

export interface Finding {
  readonly is: string
  readonly where: string
}

/** Each canary once for each place that has it, in whatever spelling. */
export const findIn = ({ where, text }: Written, canaries: ReadonlyArray<Canary>): ReadonlyArray<Finding> =>
  canaries
    .filter((canary) => needlesOf(canary).some((needle) => text.includes(needle)))
    .map(({ is }) => ({ is, where }))
