/**
 * What is remembered of a login: keyed hashes of the engine and everything sent to log in, equal for equal
 * credentials, whoever uses them. Without the folder's key nobody can test a guess against one.
 */
import { createHmac, createSecretKey, type KeyObject } from "node:crypto"
import { given } from "../base/Schemas.ts"
import { isEncrypted } from "../service/Execution.ts"
import { sourceOf } from "../service/Ids.ts"

/** Making a key costs six times as much as the hash, and a run has one key. */
const keys = new WeakMap<Uint8Array, KeyObject>()
const keyOf = (bytes: Uint8Array): KeyObject => {
  const known = keys.get(bytes) ?? createSecretKey(bytes)
  keys.set(bytes, known)
  return known
}

/** HMAC-SHA256, hexadecimal. */
export const keyedHashOf = (key: Uint8Array, text: string): string =>
  createHmac("sha256", keyOf(key)).update(text).digest("hex")

const keyedHash = (key: Uint8Array, value: unknown): string => keyedHashOf(key, canonicalJson(value))

/** `parameters` are those sent: types matter, the order of keys does not. */
export const fingerprintLogin = (
  key: Uint8Array,
  engine_reference: string,
  parameters: Readonly<Record<string, unknown>>,
): string => keyedHash(key, [engine_reference, parameters])

/** Where a task comes in a run whose order says nothing; its text is compared. */
export const keyedPlace = (key: Uint8Array, run_id: string, subject: string): string =>
  keyedHash(key, ["place", run_id, subject])

/** A login, by what is sent and by the account that it opens; nothing in it says whose it is. */
export interface LoginKeys {
  /** Of the engine and everything that is sent. */
  readonly fingerprint: string | undefined
  /** Absent for a login of an earlier version, and for a task that is only collected. */
  readonly account?: AccountKeys | undefined
}

/** The account that a login opens at its source, and what is sent to open it. Keyed hashes. */
export interface AccountKeys {
  /** Of the source and the values of `identity`. */
  readonly account: string
  /**
   * The values that say whose login it is, sorted. Two logins of a source open one account if the list of one
   * contains that of the other, or is among what the other sends: its channels may ask for different fields.
   */
  readonly identity: ReadonlyArray<string>
  /**
   * All values that are neither secret nor to choose from, if there are more of them: another channel, or the
   * next version of the form, may say that they identify the user.
   */
  readonly plain?: ReadonlyArray<string>
  /** Of the source and everything that is sent, whatever the channel. */
  readonly password: string
  /** The same of its secrets alone, if there is more: what channels with other fields have in common. */
  readonly secret?: string
  /** Where it is sent. */
  readonly engine?: string
  /** Of the customer and what is sent besides secrets, if the form does not say what identifies a user. */
  readonly row?: string
  /** Of the source and all names and values as they are written down, whatever the form makes of them. */
  readonly written?: string
  /** Other names of this login and its account: what earlier versions called them, and `written`. */
  readonly former: ReadonlyArray<string>
  /** Those of them under which something is known; set once that was looked up. */
  readonly absorbs?: ReadonlyArray<string>
  /** Its values are written out and stand still: if they change, a person has changed them. */
  readonly isByHand: boolean
}

/** What is kept of an account with each login, and with a token that was made with one. */
export type KeptKeys = Omit<AccountKeys, "engine" | "former" | "absorbs" | "isByHand">

export const keptKeys = (keys: AccountKeys): KeptKeys => {
  const { account, identity, plain, password, secret, row, written } = keys
  return { account, identity, password, ...given({ plain, secret, row, written }) }
}

export const loginKeysOf = ({ fingerprint, account }: LoginKeys): LoginKeys => ({
  fingerprint,
  ...(account === undefined ? {} : { account }),
})

/** What is hashed for every encrypted value; no value that is written out becomes it. */
const unreadable = "ENCRYPTED"

/** Whose login it is, and where. */
export interface LoginPlace {
  readonly customer_id: string
  readonly engine_reference: string
}

/** What an engine's form says about its fields (2.3); undefined while no form has been seen. */
export interface FieldRoles {
  /** `locking_fields`: they never change for a user. */
  readonly locking: ReadonlyArray<string>
  /** Fields with a few values to choose from: they say nothing about whose login it is. */
  readonly selectors: ReadonlySet<string>
  readonly secret: ReadonlySet<string>
}

export const noRoles: FieldRoles = { locking: [], selectors: new Set(), secret: new Set() }

/** Spelling does not make another account: case, spaces, signs and leading zeros are left out. */
const spelled = (value: string | number | boolean): string => {
  const text = String(value)
  const bare = text
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, "")
  if (bare === "") return text
  return /^\d+$/.test(bare) ? bare.replace(/^0+(?=\d)/, "") : bare
}

type Sent = Readonly<Record<string, unknown>>
const isPlain = (value: unknown): value is string | number | boolean =>
  (typeof value === "string" && value !== "") || typeof value === "number" || typeof value === "boolean"
const ofFields = (names: ReadonlyArray<string>, sent: Sent): ReadonlyArray<string | number | boolean> =>
  names.flatMap((name) => {
    const value = Object.hasOwn(sent, name) ? sent[name] : undefined
    return isPlain(value) ? [value] : []
  })

/** A value that is sent to a source, however it is spelled; forms may turn a text into a number. */
const valueKey = (key: Uint8Array, engine_reference: string, value: unknown): string =>
  keyedHash(key, ["value", sourceOf(engine_reference), isPlain(value) ? spelled(value) : value])

/** The account of a customer at a source, where nothing readable says which of them a login opens. */
export const customerAccount = (
  key: Uint8Array,
  { customer_id, engine_reference }: LoginPlace,
): ReadonlyArray<string> => [keyedHash(key, ["customer", sourceOf(engine_reference), customer_id])]

/**
 * Only the `locking_fields` that say whose login it is: they are sent, and neither secret nor to choose from,
 * unless all that is sent is secret. Another channel of the source may name them otherwise.
 */
const withLockingIn = (sent: Sent, roles: FieldRoles): FieldRoles => {
  const isSent = (name: string) => !roles.selectors.has(name) && ofFields([name], sent).length > 0
  const isOpen = (name: string) => isSent(name) && !roles.secret.has(name)
  const tells = Object.keys(sent).some(isOpen) ? isOpen : isSent
  return { ...roles, locking: roles.locking.filter(tells) }
}

/**
 * The values of `locking_fields`; if there are none, everything that is sent. Without a readable value, the
 * login is the customer's at this source.
 */
const identityOf = (key: Uint8Array, place: LoginPlace, roles: FieldRoles, sent: Sent) => {
  const source = sourceOf(place.engine_reference)
  const isNamed = (name: string) => !roles.selectors.has(name)
  const locking = ofFields(roles.locking, sent)
  const values = locking.length > 0 ? locking : ofFields(Object.keys(sent).filter(isNamed), sent)
  if (values.length === 0 || values.some(isEncrypted)) return { identity: customerAccount(key, place) }
  const hashes = (of: typeof values) =>
    [...new Set(of.map((value) => valueKey(key, place.engine_reference, value)))].toSorted()
  const open = ofFields(
    Object.keys(sent).filter((name) => isNamed(name) && !roles.secret.has(name)),
    sent,
  )
  if (locking.length > 0) {
    const identity = hashes(locking)
    const plain = hashes([...locking, ...open.filter((value) => !isEncrypted(value))])
    return roles.secret.size > 0 && plain.length > identity.length ? { identity, plain } : { identity }
  }
  const row =
    open.length === 0 ? {} : { row: keyedHash(key, ["row", source, place.customer_id, hashes(open)]) }
  return { identity: hashes(values), ...row }
}

/**
 * What is sent besides who it is, whatever the channel calls its fields: a channel that asks for more about
 * the user asks for no other password, nor does a form that takes a number where it took a text. Sorted, as
 * the texts of their JSON.
 */
const writtenValues = ({ locking, selectors, secret }: FieldRoles, sent: Sent): ReadonlyArray<string> => {
  const isWho = (name: string) =>
    !selectors.has(name) &&
    (locking.length > 0 ? locking.includes(name) : secret.size > 0 && !secret.has(name))
  return Object.entries(sent)
    .flatMap(([name, value]) => {
      if (value === undefined || isWho(name)) return []
      return [isEncrypted(value) ? unreadable : canonicalJson(isPlain(value) ? String(value) : value)]
    })
    .toSorted()
}

/**
 * All that is written down for a login, before a form says which types its values have and which of them
 * identify a user: what was rejected once is known again, whatever another channel, or the next version of
 * the form, says of it. Where a value is encrypted, only one customer's are equal.
 */
export const writtenKey = (key: Uint8Array, place: LoginPlace, written: Sent): string => {
  const values = Object.entries(written).map(([name, value]) => [
    name,
    isEncrypted(value) ? unreadable : isPlain(value) ? String(value) : value,
  ])
  const whose = Object.values(written).some(isEncrypted) ? [place.customer_id] : []
  return keyedHash(key, ["written", sourceOf(place.engine_reference), Object.fromEntries(values), ...whose])
}

/**
 * An encrypted value is never compared: encrypted anew, it is still the same password. `engines` are those of
 * the source on which an earlier version knew rejected or lost logins.
 */
export const accountKeys = (
  key: Uint8Array,
  place: LoginPlace,
  login: {
    readonly sent: Sent
    readonly roles: FieldRoles
    readonly isByHand: boolean
    /** As `writtenKey` made it; of what is sent, if nothing else is known. */
    readonly written?: string | undefined
  },
  engines: ReadonlyArray<string> = [],
): AccountKeys => {
  const { sent, written = writtenKey(key, place, sent) } = login
  const roles = withLockingIn(sent, login.roles)
  const { engine_reference } = place
  const source = sourceOf(engine_reference)
  const found = identityOf(key, place, roles, sent)
  const isSealed = Object.values(sent).some(isEncrypted)
  const values = writtenValues(roles, sent)
  const isSecret = ([name]: readonly [string, unknown]) => roles.secret.has(name)
  const secrets = writtenValues(roles, Object.fromEntries(Object.entries(sent).filter(isSecret)))
  const passwordOf = (of: ReadonlyArray<string>) => keyedHash(key, ["password", source, of])
  const isMore = secrets.length > 0 && secrets.length < values.length
  const former = formerAccount(key, place, login.roles.locking, sent)
  return {
    account: accountOf(key, engine_reference, found.identity),
    ...found,
    password: passwordOf(values),
    ...(isMore ? { secret: passwordOf(secrets) } : {}),
    engine: engine_reference,
    written,
    former: [
      written,
      ...(former === undefined ? [] : [former]),
      ...new Set([engine_reference, ...engines].map((engine) => fingerprintLogin(key, engine, sent))),
    ],
    isByHand: login.isByHand && !isSealed,
  }
}

/**
 * The keys of a login with a stored token: those of the parameters that it was made with. Of an older token,
 * and of one that was exchanged for an execution of somebody else, only its customer is known.
 */
export const tokenAccountKeys = (
  key: Uint8Array,
  place: LoginPlace,
  { fingerprint, login }: { readonly fingerprint: string; readonly login?: KeptKeys | undefined },
): AccountKeys => {
  const { engine_reference: engine } = place
  if (login !== undefined)
    return { ...login, engine, former: formerOf(login, [fingerprint]), isByHand: false }
  const identity = customerAccount(key, place)
  return {
    account: accountOf(key, place.engine_reference, identity),
    identity,
    password: fingerprint,
    engine,
    former: [fingerprint],
    isByHand: false,
  }
}

/** Names by which a login is found besides those of its account. */
export const formerOf = ({ written }: Pick<KeptKeys, "written">, others: ReadonlyArray<string>) =>
  written === undefined ? others : [written, ...others]

const accountOf = (key: Uint8Array, engine_reference: string, identity: ReadonlyArray<string>): string =>
  keyedHash(key, ["account", sourceOf(engine_reference), identity])

/** What versions up to 0.17.0 called the account: the customer was part of it. */
const formerAccount = (
  key: Uint8Array,
  { customer_id, engine_reference }: LoginPlace,
  locking: ReadonlyArray<string>,
  sent: Sent,
): string | undefined => {
  const values = new Set(
    ofFields(locking, sent).map((value) =>
      isEncrypted(value) ? unreadable : String(value).trim().toLowerCase(),
    ),
  )
  if (values.size === 0 && Object.values(sent).some(isEncrypted)) values.add(unreadable)
  return values.size === 0
    ? undefined
    : keyedHash(key, ["account", customer_id, sourceOf(engine_reference), [...values].toSorted()])
}

/** The keys of every object in order; what JSON cannot express is left out, as it is when sent. */
export const canonicalJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null"
  const entries = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([name, item]) => `${JSON.stringify(name)}:${canonicalJson(item)}`).join(",")}}`
}
