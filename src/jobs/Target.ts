/**
 * Which service a job runs against, taking the environment into account: NIGHTJAR_BASE_URL,
 * NIGHTJAR_FLOWS_URL and NIGHTJAR_APP_SECRET override what the file says, and NIGHTJAR_BASE_URL turns
 * `service: sandbox` into a remote one.
 */
import { Schema } from "effect"
import type { Context } from "./Problem.ts"
import { missingKey } from "../base/Schemas.ts"
import type { ServiceTarget } from "./Job.ts"
import type { SecretReference } from "./Scalars.ts"
import { Sandbox } from "./ServiceSettings.ts"
import type { Service } from "./ServiceSettings.ts"
import {
  beside,
  parseReference,
  parseServiceUrl,
  parseUrlBeside,
  pathRule,
  serviceUrlRule,
} from "./Scalars.ts"

type Entry = typeof Service.Type
type RemoteEntry = Exclude<Entry, "sandbox">

export const overrides = {
  base_url: "NIGHTJAR_BASE_URL",
  flows_url: "NIGHTJAR_FLOWS_URL",
  app_secret: "NIGHTJAR_APP_SECRET",
} as const

interface Surroundings {
  readonly environment: ReadonlyMap<string, string>
  readonly folder: string
}

const plainSandbox: typeof Sandbox.Type = Schema.decodeUnknownSync(Sandbox)({})

const embedded = (entry: Entry, folder: string): ServiceTarget => {
  const { faults, reading, ...clock } = (entry === "sandbox" ? undefined : entry.sandbox) ?? plainSandbox
  const file = (path: string | undefined) => (path === undefined ? undefined : beside(folder, path))
  return { _tag: "Embedded", ...clock, faults: file(faults), reading: file(reading) }
}

/** Undefined after its errors went to the findings. */
export const resolveTarget = (
  context: Context,
  entry: Entry | undefined,
  { environment, folder }: Surroundings,
): ServiceTarget | undefined => {
  const { document, findings } = context
  const replaced = (key: keyof typeof overrides) => environment.get(overrides[key]) || undefined
  if (entry === undefined && replaced("base_url") === undefined) {
    findings.error(document.place(["service"]), missingKey("service"))
    return undefined
  }
  const written: RemoteEntry = entry === undefined || entry === "sandbox" ? {} : entry
  if (written.sandbox !== undefined) refuseBoth(context, written)
  if (replaced("base_url") === undefined && (entry === "sandbox" || written.sandbox !== undefined)) {
    return embedded(entry ?? "sandbox", folder)
  }
  const address = (
    key: "base_url" | "flows_url",
    rule: string,
    parse: (value: string) => string | undefined,
  ): string | undefined => {
    const value = replaced(key) ?? written[key]
    const url = value === undefined ? undefined : parse(value)
    if (value === undefined) findings.error(document.place(["service", key]), missing(key))
    else if (url === undefined) {
      findings.error(document.place(["service"]), `${overrides[key]}: expected ${rule}`)
    }
    return url
  }
  const secret = (): SecretReference | undefined => {
    if (replaced("app_secret") !== undefined) return { _tag: "Env", name: overrides.app_secret }
    if (written.app_secret !== undefined) return parseReference(written.app_secret, folder)
    findings.error(document.place(["service", "app_secret"]), missing("app_secret"))
    return undefined
  }
  const base_url = address("base_url", serviceUrlRule, parseServiceUrl)
  // Without its host, a path means nothing; a problem with the host is already reported.
  const beside = (value: string) => parseUrlBeside(base_url ?? "https://host.invalid", value)
  const flows_url = address("flows_url", serviceUrlRule + pathRule, beside)
  const app_secret = secret()
  if (base_url === undefined || flows_url === undefined || app_secret === undefined) return undefined
  const attachments = written.attachments_url
  const attachments_url = attachments === undefined ? flows_url : beside(attachments)
  if (written.accept_any_certificate === true)
    findings.warn(document.place(["service", "accept_any_certificate"], "key"), anyCertificate)
  return {
    _tag: "Remote",
    base_url,
    flows_url,
    attachments_url: attachments_url ?? flows_url,
    app_secret,
    ...(written.accept_any_certificate === true ? { accept_any_certificate: true } : {}),
  }
}

const missing = (key: keyof typeof overrides): string =>
  `${missingKey(key)}, and ${overrides[key]} is not set either`

const anyCertificate =
  "certificates are not checked: whoever answers at these addresses receives the application secret and " +
  "every login. To trust an authority of your own, name its file in NODE_EXTRA_CA_CERTS instead"

const refuseBoth = ({ document, findings }: Context, written: RemoteEntry): void => {
  for (const key of Object.keys(written)) {
    if (key === "sandbox") continue
    findings.error(
      document.place(["service", key], "key"),
      `\`${key}\` belongs to a remote service, and \`sandbox\` is not one: keep either`,
    )
  }
}
