/** A secret as a hostile service may spell it, written down again without looking at how the program reads it. */

export const spellingsOf = (secret: string): ReadonlyArray<string> => {
  const bytes = Buffer.from(secret)
  const url = encodeURIComponent(secret)
  return [
    ...new Set([
      secret,
      JSON.stringify(secret).slice(1, -1),
      url,
      url.toLowerCase(),
      encodeURI(secret),
      secret.replaceAll(/[^A-Za-z0-9]/gu, (sign) => `&#${sign.codePointAt(0)};`),
      new URLSearchParams({ a: secret }).toString().slice(2),
      bytes.toString("base64"),
      bytes.toString("base64url"),
      bytes.toString("hex"),
      bytes.toString("hex").toUpperCase(),
    ]),
  ]
}

/** Base64 of what the secret is the end of: from the first character that holds nothing but of it. */
const endInBase64 = (before: string, secret: string): string => {
  const from = Math.ceil((Buffer.byteLength(before) * 8) / 6)
  return Buffer.from(before + secret)
    .toString("base64")
    .slice(from, -4)
}

export interface Canary {
  readonly user: string
  readonly secret: string
}

/** What a byte search looks for: any of these is a leak. */
export const needlesOf = ({ user, secret }: Canary): ReadonlyArray<string> => [
  ...spellingsOf(secret),
  endInBase64(`${user}:`, secret),
]

/** What the service repeats: the secret in every spelling, and in `user:password`. */
export const echoOf = (canaries: ReadonlyArray<Canary>): string =>
  canaries
    .flatMap(({ user, secret }) => [
      ...spellingsOf(secret),
      Buffer.from(`${user}:${secret}`).toString("base64"),
      `https://${user}:${encodeURIComponent(secret)}@example.org/`,
    ])
    .join(" ")
