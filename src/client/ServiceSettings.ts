/**
 * Where the service is and what may be sent there. The application secret travels in clear text in every
 * request, so a URL is refused before the first call if it could give the secret to somebody else: plain
 * http to another machine, credentials in the URL, or a secret that is not a header value (promise 12).
 */
import { withoutEnd } from "../service/TextEnds.ts"
import { Redacted, Result, Schema } from "effect"
import { isLoopback } from "../base/Loopback.ts"

export interface ServiceAddresses {
  readonly base_url: string
  readonly flows_url: string
  readonly attachments_url: string
}

export interface ServiceSettings extends ServiceAddresses {
  readonly app_secret: Redacted.Redacted<string>
}

/**
 * The settings cannot be used; nothing was sent. `setting` is the field at fault, the message contains no
 * secret.
 */
export class ServiceSettingsRefused extends Schema.TaggedError<ServiceSettingsRefused>()(
  "ServiceSettingsRefused",
  { setting: Schema.String, message: Schema.String },
) {}

const refuse = (setting: string, message: string) =>
  Result.fail(new ServiceSettingsRefused({ setting, message: `${setting}: ${message}` }))

/** The root that paths are appended to: scheme, host and path, without a final slash. */
export const checkAddress = (
  setting: keyof ServiceAddresses,
  address: string,
): Result.Result<string, ServiceSettingsRefused> => {
  if (!URL.canParse(address)) return refuse(setting, "this is not an absolute URL such as https://host/path")
  const url = new URL(address)
  if (url.username !== "" || url.password !== "") {
    return refuse(setting, "a URL must not contain a user name or password")
  }
  if (url.search !== "" || url.hash !== "")
    return refuse(setting, "a URL must end with its path, without ? or #")
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    return refuse(setting, `${url.protocol}// cannot be called; use https://`)
  }
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    return refuse(
      setting,
      `plain http to ${url.hostname} would expose the application secret to the network; use https:// ` +
        "(http:// is for this machine only)",
    )
  }
  return Result.succeed(url.origin + withoutEnd(url.pathname, "/"))
}

/** A secret that an HTTP header can carry: visible ASCII, spaces only inside. */
export const checkSecret = (
  app_secret: Redacted.Redacted<string>,
): Result.Result<string, ServiceSettingsRefused> => {
  const secret = Redacted.value(app_secret)
  if (secret === "") return refuse("app_secret", "the application secret is empty")
  if (!/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(secret)) {
    return refuse(
      "app_secret",
      "the application secret has a line break, outer spaces or a character not allowed in a header",
    )
  }
  return Result.succeed(secret)
}
