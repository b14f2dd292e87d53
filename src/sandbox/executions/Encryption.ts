/**
 * Encrypted values (sections 4.1, 4.3 and 5): `rsa::` and `hybrid::`, one by one or a whole object in one
 * string. Keys and procedure are not shown; own choice: one RSA-2048 key pair, the same in every copy of
 * the embedded service, whose public half is served and documented. `openParameters` is the only place
 * where values are decrypted.
 */
import { Predicate } from "effect"
import { constants, createDecipheriv, createPrivateKey, createPublicKey, privateDecrypt } from "node:crypto"
import type { FormFinding } from "../engines/CheckForm.ts"

/**
 * Protects nothing: it is part of a published program, so that every tester can encrypt for it. PKCS #8,
 * base64.
 */
const sandboxKey = [
  "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDLl96bVZ4SkSuhd7K1R/p+6cA7rrYXLupwSgIDRZ+U043i",
  "LXUk9IZN+JfL3nOpioocY52V1j3N6C59wzRjuLR73T8rYfV4xU5Uzz4MCvjMjOut09rOsAasO6afI8BtOkkKxVLMpvOkx6CE",
  "q/MtaFuEVNCjgaKgXtKJYg0CsxXO7hpoxonF6bpNdyEUXBK5LQdMHRA+XnU45K71acZNUyd2wCHDgnpkAoqFkadwQFqcky2R",
  "ktYf8AP7J+tKaL2n7FZrmVNbxfC9NY6fMGhQp54EwU6NCBRgXK2lvEwfNQAXIAQE2lkUzMrDOzuX89kYlBGshk9lWbzGOqRV",
  "honDqcv7AgMBAAECggEAJgqG/CRHyHVany2D9U5xNkSL+DrhaDyKbpfNf3oDYuYSlUfkIxcTfz8rcdrrZqrtunc8izJAUxiG",
  "k1YllFp/UsOY2YzQtpO7WqpskAh+y42rPcwfjs4iOQ1eSU7/Vgl1e286VOX/EXOBgTi10+6zZusIHv0Ke4esNCJfhvkaYpMS",
  "haBzae2wUAHtX7dGwOiDMuIMnGLoymbt7ivunmoiWkSAGZ53lfulU9PB5HqWZqMh2tLYJuiNFTAdetKcLNb5iUYFXBPFalPx",
  "srBaPZeESoC1EOcgXU/gtfb4Ijg5/LWXhi3ZXcQEEdyGO6meoPYUNT/YxK+z9SM4UcgmxdDo9QKBgQDn9+5BJqn2YFROFca3",
  "YghzASpnsOo4000ZuBictj5fjFfe985y/ZCwa1/Mh4847Xlk0gcJebpGzjD8/9FJg3RT8cLfw3d9Fz7EnkxZfxJnAWdCmA7O",
  "w8QOOTP2QiHDzZ28qhcP9/zVDFz9d1pgmKIbQCCGzk672f8JKlPIb8a/5QKBgQDgr2UlIHb2LerncpibtygsPLS5v7Cbkt5/",
  "lvFAdCR/Em8m77uSUbZCWU6d3rhoxNeGH3T96ycIM3OedujhlaNpkSAZbUeoVsFn7q5U9VDQaGYxAobpmMlKZMB8Y4MDfOSv",
  "6I7XxS2pjsI6Jr+zdmMO/buBusrPUSlbPUA6TIDeXwKBgQDI0FLa5fzXRFdXbfSkxuJnpQev0nFCFnK1pDDyYbangtiDNuXr",
  "mGXMxHefmW88qiCgTk43PsErEM9KBrCIwptPHIlGq3Hiwd/d2OhhxecJcyaQeRDAoKs2YQEB3Ahc+MDoFht3AIlJarWJ2+xK",
  "mXgkvSQrb6iraTInHhR//XwCnQKBgHO0Pvzog/pwWPiJPedqYYiuVk8VVMg40NWZkHElninF/3FooQpPg/EU9nQ73nEtdON/",
  "zYp5Dyec/1xKVdDdc0KI1qPhb7ZTvtNbyXC8x7obGQ0CBSHEaVwjGDC2OiCQr1+a/fxFcSdQ+dpiW/P58jclGOtMmuY6IHb4",
  "ytt6zB43AoGAOkNLjp1k8imKpOmI+usVY8wf25dj+bkMn8JrWqBND3vD24w2XdAq9TBEcCVAsyDj6cXS60ocP2Tpr3oGpy8i",
  "O5+T0IxSM7HVqaYyok8lW2jYC8EAmpbUM/w4WuXfrr/gVetQd8KE4G7xbamKu3FX4/nDwqOWrSP5hh6HO/3XRq0=",
].join("")

const privateKey = createPrivateKey({
  key: Buffer.from(sandboxKey, "base64"),
  format: "der",
  type: "pkcs8",
})

const oaep = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: "sha256" }

/** What a caller needs in order to encrypt for this service. */
export const encryptionKey = {
  shape: "nightjar-sandbox",
  public_key: createPublicKey(privateKey).export({ type: "spki", format: "pem" }).toString(),
  rsa: "rsa:: and base64(RSA-OAEP-SHA256(value)); up to 190 bytes",
  hybrid:
    "hybrid:: and base64(RSA-OAEP-SHA256(key)) . base64(iv) . base64(AES-256-GCM(value) and its tag), " +
    "joined by dots: a random key of 32 bytes, an iv of 12, a tag of 16",
  whole_object: "a JSON object encrypted in the same way in place of `parameters` or of a resume body",
} as const

const openRsa = (text: string): string =>
  privateDecrypt({ key: privateKey, ...oaep }, Buffer.from(text, "base64")).toString("utf8")

const tagBytes = 16

const openHybrid = (text: string): string => {
  const [wrapped = "", iv = "", sealed = ""] = text.split(".")
  const key = privateDecrypt({ key: privateKey, ...oaep }, Buffer.from(wrapped, "base64"))
  const bytes = Buffer.from(sealed, "base64")
  const decipher = createDecipheriv("aes-256-gcm", key, Buffer.from(iv, "base64"), {
    authTagLength: tagBytes,
  })
  decipher.setAuthTag(bytes.subarray(-tagBytes))
  const opened = [decipher.update(bytes.subarray(0, -tagBytes)), decipher.final()]
  return Buffer.concat(opened).toString("utf8")
}

/** Whether a text claims to be encrypted. */
export const isSealed = (value: unknown): value is string =>
  typeof value === "string" && /^(rsa|hybrid)::/.test(value)

/** Undefined if it cannot be decrypted: not our key, not our procedure, or damaged. */
const openText = (sealed: string): string | undefined => {
  try {
    return sealed.startsWith("rsa::") ? openRsa(sealed.slice(5)) : openHybrid(sealed.slice(8))
  } catch {
    return undefined
  }
}

const openObject = (sealed: string): Readonly<Record<string, unknown>> | undefined => {
  const text = openText(sealed)
  if (text === undefined) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return Predicate.isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** A flat object in clear text. */
export interface OpenedValues {
  readonly values: Readonly<Record<string, unknown>>
  /** What could not be decrypted; such a value is not in `values`. */
  readonly findings: ReadonlyArray<FormFinding>
  /** Names that came encrypted; their values are never echoed. */
  readonly sealed: ReadonlySet<string>
}

const complain = (loc: ReadonlyArray<string>, input: unknown): FormFinding => ({
  error: { loc, msg: "value cannot be decrypted", type: "encryption_error" },
  input,
})

const nothingSealed: ReadonlySet<string> = new Set()

/** Decrypts login parameters, stored credentials or the body of a resume, into the original strings. */
export const openParameters = (parameters: unknown): OpenedValues => {
  if (!Predicate.isObject(parameters)) {
    const values = isSealed(parameters) ? openObject(parameters) : undefined
    return values === undefined
      ? { values: {}, findings: [complain([], parameters)], sealed: nothingSealed }
      : { values, findings: [], sealed: new Set(Object.keys(values)) }
  }
  const entries = Object.entries(parameters)
  if (!entries.some(([, value]) => isSealed(value))) {
    return { values: parameters, findings: [], sealed: nothingSealed }
  }
  const opened = entries.map(
    ([name, value]) => [name, value, isSealed(value) ? openText(value) : value] as const,
  )
  return {
    values: Object.fromEntries(
      opened.filter(([, , clear]) => clear !== undefined).map(([name, , clear]) => [name, clear]),
    ),
    findings: opened
      .filter(([, , clear]) => clear === undefined)
      .map(([name, value]) => complain([name], value)),
    sealed: new Set(entries.filter(([, value]) => isSealed(value)).map(([name]) => name)),
  }
}
