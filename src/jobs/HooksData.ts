/**
 * The pairs of `hooks_extra_data`, which the service appends to every webhook address and which must never
 * hold a secret (4.1). Each is compared with every login value of every customer: one customer's password in
 * the pairs of an engine would be in the webhook addresses of all customers. No message repeats a value.
 */
import { Predicate, Redacted } from "effect"
import type { Path } from "../base/Schemas.ts"
import type { Item } from "./Assignments.ts"
import type { Assignment, HookPair, Job } from "./Job.ts"
import type { Context, Findings } from "./Problem.ts"
import type { SecretReference } from "./Scalars.ts"
import type { Customer, JobEngine } from "./ServiceSettings.ts"
import { decodeEscapes } from "../privacy/Escapes.ts"
import { isDigits, isInsideSize, leavesOf } from "../privacy/KnownSecrets.ts"

// Finds known secrets in texts that leave this machine, whole or inside, in any case and encoding. The time
// for one text does not grow with the number of secrets.

const keepings = ["value", "reference", "password"] as const
type Keeping = (typeof keepings)[number]

interface KnownSecret {
  /** Any login value; strings and numbers inside lists and mappings count one by one. */
  readonly value: unknown
  /** Safe to show. */
  readonly whose: string
  /** Its form or its name says so; or it is kept elsewhere; or it may be a harmless word too. */
  readonly kept: Keeping
}

interface SecretFound {
  readonly secret: KnownSecret
  readonly how: "is" | "contains"
  readonly isEncoded: boolean
  /** Too long to match by chance. */
  readonly isLong: boolean
}

/** The shortest text that is recognised inside another one; secrets are looked up by this many characters. */
const beginning = 6
/** Of four letters in base64, three are left, which match any word by chance. */
const encodedMin = 4

/** Case is ignored: a password in capitals gives nearly all of it away. */
const fold = (text: string): string => text.normalize("NFKC").trim().toLowerCase()

const runs = [
  { of: /[A-Za-z0-9+/]{4,}/g, encoding: "base64" },
  { of: /[A-Za-z0-9_-]{4,}/g, encoding: "base64url" },
  { of: /[0-9A-Fa-f]{8,}/g, encoding: "hex" },
] as const

/** Each run of the alphabets, from each place where an encoded text may begin in it. */
const decodedRuns = (text: string): ReadonlyArray<string> =>
  runs.flatMap(({ of, encoding }) =>
    [...text.matchAll(of)].flatMap(([run]) =>
      [0, 1, 2, 3].map((skipped) => Buffer.from(run.slice(skipped), encoding).toString("utf8")),
    ),
  )

/** The text's other readings, two encodings deep at most. */
const otherReadings = (text: string): ReadonlySet<string> => {
  const plain = decodeEscapes(text)
  const readings = [plain, plain.replaceAll("+", " "), decodeEscapes(plain)]
  const decoded = new Set([text, ...readings].flatMap(decodedRuns))
  const all = new Set([...readings, ...decoded, ...[...decoded].map(decodeEscapes)])
  all.delete(text)
  return all
}

const rank = ({ kept }: KnownSecret): number => keepings.indexOf(kept)

const makeIndex = (secrets: Iterable<KnownSecret>) => {
  const whole = new Map<string, KnownSecret>()
  // Lengths by first characters: many thousand user names may begin alike.
  const lengths = new Map<string, Set<number>>()
  for (const secret of secrets) {
    for (const leaf of leavesOf(secret.value)) {
      const text = fold(leaf)
      const known = whole.get(text)
      if (known !== undefined && rank(known) >= rank(secret)) continue
      whole.set(text, secret)
      if (known !== undefined || !isInsideSize(text)) continue
      const start = text.slice(0, beginning)
      lengths.set(start, (lengths.get(start) ?? new Set()).add(text.length))
    }
  }
  return { whole, lengths }
}

/** Returns everything that a text contains, unencoded matches first, whole ones before partial ones. */
export const makeSecretFinder = (secrets: Iterable<KnownSecret>) => {
  const { whole, lengths } = makeIndex(secrets)
  const findIn = (text: string, isEncoded: boolean): ReadonlyArray<SecretFound> => {
    const found: Array<SecretFound> = []
    const same = whole.get(text)
    if (same !== undefined) found.push({ secret: same, how: "is", isEncoded, isLong: isInsideSize(text) })
    for (let at = 0; at + beginning <= text.length; at++) {
      for (const length of lengths.get(text.slice(at, at + beginning)) ?? []) {
        const part = text.slice(at, at + length)
        const isPart = part.length === length && length < text.length
        const secret = isPart ? whole.get(part) : undefined
        const goesOn = /\d/.test(text.charAt(at - 1)) || /\d/.test(text.charAt(at + length))
        if (secret === undefined || (isDigits(part) && goesOn)) continue
        found.push({ secret, how: "contains", isEncoded, isLong: true })
      }
    }
    return found
  }
  return (text: string): ReadonlyArray<SecretFound> => {
    const encoded = [...otherReadings(text)].map(fold).filter(({ length }) => length >= encodedMin)
    return [...findIn(fold(text), false), ...encoded.flatMap((reading) => findIn(reading, true))]
  }
}

/** Every pair in the file with its place, whether an assignment uses it or not. */
export const hookPairs = (
  { document }: Context,
  engines: ReadonlyArray<Item<typeof JobEngine.Type>>,
  customers: ReadonlyArray<Item<typeof Customer.Type>>,
): ReadonlyArray<HookPair> => {
  const pairsOf = (written: typeof JobEngine.Type, path: Path): ReadonlyArray<HookPair> =>
    Predicate.isString(written)
      ? []
      : Object.entries(written.hooks_extra_data ?? {}).map(([key, value]) => {
          const at = [...path, "hooks_extra_data", key]
          return { key, value, key_place: document.place(at, "key"), place: document.place(at) }
        })
  return [
    ...engines.flatMap(({ index, value }) => pairsOf(value, ["engines", index])),
    ...customers.flatMap(({ index, value }) =>
      (value.engines ?? []).flatMap((engine, position) =>
        pairsOf(engine, ["customers", index, "engines", position]),
      ),
    ),
  ]
}

const secretName = /passw|passphrase|contrase|secret|clave|\bpin\b|_pin$|^pin_|token|\botp\b/i

export const namesSecret = (name: string): boolean => secretName.test(name)

/** A key of a mapping may be a value with a misplaced colon: only what looks like a name is shown. */
const nameOf = (name: string): string | undefined => (/^[A-Za-z][\w.-]{0,63}$/.test(name) ? name : undefined)

/** What an assignment logs in with; `valueOf` returns undefined for what is not known (yet). */
export const secretsOfLogin = (
  { login, source }: Assignment,
  valueOf: (reference: SecretReference) => unknown,
  isSecret: (name: string) => boolean = namesSecret,
): ReadonlyArray<KnownSecret> => {
  if (login._tag === "Token") return []
  return Object.entries(login.parameters).map(([name, parameter]): KnownSecret => {
    const shown = nameOf(name)
    const what = shown === undefined ? "a parameter" : `the parameter \`${shown}\``
    return {
      value: parameter._tag === "Literal" ? Redacted.value(parameter.value) : valueOf(parameter.reference),
      whose: `the value of ${what} of the customer at ${source}`,
      kept: isSecret(name) ? "password" : parameter._tag === "Reference" ? "reference" : "value",
    }
  })
}

/** The secrets of the job itself. The embedded service's own secret is public. */
export const keysOf = ({
  service,
  tokens_key,
  pseudonyms,
}: Pick<Job, "tokens_key" | "pseudonyms"> & { readonly service: Job["service"] | undefined }): ReadonlyArray<{
  readonly reference: SecretReference
  readonly whose: string
}> => [
  ...(service?._tag === "Remote" ? [{ reference: service.app_secret, whose: "the application secret" }] : []),
  ...(tokens_key === undefined ? [] : [{ reference: tokens_key, whose: "the key of the token store" }]),
  ...(pseudonyms === undefined ? [] : [{ reference: pseudonyms.key, whose: "the key of the pseudonyms" }]),
]

const relation = ({ how, isEncoded, secret }: SecretFound): string => {
  if (how === "is") return isEncoded ? `is an encoded form of ${secret.whose}` : `is ${secret.whose}`
  return isEncoded ? `contains an encoded form of ${secret.whose}` : `contains ${secret.whose}`
}

/** A short key that is also a user name is a name like any other (`who`); as a value it is refused. */
const isRefused = (at: "key" | "value", { secret, how, isLong }: SecretFound): boolean => {
  switch (secret.kept) {
    case "password":
      return true
    case "reference":
      return at === "value" || isLong
    case "value":
      return how === "is" && isLong
  }
}

const tell = (findings: Findings, pair: HookPair, at: "key" | "value", found: SecretFound): void => {
  const shown = at === "value" ? nameOf(pair.key) : undefined
  const subject =
    at === "key"
      ? "a key of `hooks_extra_data`"
      : shown === undefined
        ? "a value of `hooks_extra_data`"
        : `the value of \`hooks_extra_data.${shown}\``
  const place = at === "key" ? pair.key_place : pair.place
  const what = `${subject} ${relation(found)}`
  const why = "the service appends it to every webhook address"
  if (isRefused(at, found)) {
    const next = "remove it or write something else"
    findings.error(place, `${what}; ${why}, which must never hold a secret (reference, 4.1): ${next}`)
  } else findings.warn(place, `${what}; ${why}: keep it only if it is neither a secret nor personal data`)
}

export const checkHooks = (
  pairs: ReadonlyArray<HookPair>,
  secrets: Iterable<KnownSecret>,
  findings: Findings,
): void => {
  if (pairs.length === 0) return
  const find = makeSecretFinder(secrets)
  for (const pair of pairs) {
    for (const at of ["key", "value"] as const) {
      const all = find(pair[at])
      const found = all.find((one) => isRefused(at, one)) ?? all[0]
      if (found !== undefined) tell(findings, pair, at, found)
    }
  }
}
