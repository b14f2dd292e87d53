/**
 * The consent of a session (section 2.7): the documents that the widget shows, with the real SHA-256 of
 * their contents, and the audit trail of what the customer accepted. The session of an execution has an
 * invented customer who accepted everything shortly before.
 */
import { sha256Hex } from "../../base/Hashes.ts"
import type { FlowSession } from "../state/FlowSession.ts"
import { flowMomentOf } from "../state/FlowTimeline.ts"
import type { Retrieval } from "../state/ResultsPlan.ts"
import { seeded } from "../state/Seeded.ts"

export interface ConsentDocument {
  readonly document_id: string
  readonly version: string
  readonly title: string
  readonly content: string
  /** SHA-256 of the content's UTF-8 bytes, in hex. */
  readonly hash: string
}

const documentOf = (
  document_id: string,
  version: string,
  title: string,
  content: string,
): ConsentDocument => ({
  document_id,
  version,
  title,
  content,
  hash: sha256Hex(content),
})

/** Not shown; own choice: two documents, both of which must be accepted. */
export const consentDocuments: ReadonlyArray<ConsentDocument> = [
  documentOf(
    "terms-es",
    "2.1",
    "Condiciones de uso",
    "Condiciones de uso (documento de prueba). El cliente pide que se lean los datos que ha elegido.",
  ),
  documentOf(
    "privacy-es",
    "3.0",
    "Información sobre protección de datos",
    "Protección de datos (documento de prueba). Los datos se usan una vez y se borran a petición.",
  ),
]

const iso = (at: number): string => new Date(at).toISOString()
const signatureProvider = "nightjar-sandbox"

export const defaultSignature = {
  signature_provider: signatureProvider,
  signature_metadata: { channel: "widget" },
}

/** For the session of an execution. */
export const inventedConsent = (seed: number, { started }: Retrieval) => {
  const { customer_id, results, at } = started
  const draw = seeded("consent", seed, customer_id)
  const accepted = iso(at - draw.int(5, 90) * 60_000)
  const documents = consentDocuments.map(({ document_id, version, hash }) => [
    document_id,
    {
      version,
      hash,
      sign_date: accepted,
      signature_provider: signatureProvider,
      signature_metadata: { channel: "widget", pages: draw.int(1, 6) },
    },
  ])
  return {
    accepted_date: accepted,
    accepted_features: results.features.map(({ code }) => code),
    user_ip: `203.0.113.${draw.int(1, 254)}`,
    user_agent: "Mozilla/5.0 (X11; Linux x86_64) Sandbox/1.0",
    origin: "https://widget.sandbox.invalid",
    accepted_documents: Object.fromEntries(documents),
  }
}

/** For a flow session at one moment; undefined if the customer has accepted nothing yet. */
export const givenConsent = (session: FlowSession, at: number) => {
  const given = session.phases.find(({ move }) => move === "consented")
  if (given === undefined || !flowMomentOf(session.phases, at).consented) return undefined
  const steps = session.steps.filter((taken) => taken.at <= given.from).map(({ step }) => step)
  const consent = steps.findLast((step) => step._tag === "consent")
  const start = steps.findLast((step) => step._tag === "start")
  if (consent === undefined) return undefined
  const { _tag: _start, ...browser } = start ?? { _tag: "start" }
  const documents = consent.documents.map(({ document_id, signature_provider, ...document }) => [
    document_id,
    {
      ...document,
      ...(signature_provider === undefined ? {} : { sign_date: iso(given.from), signature_provider }),
    },
  ])
  return {
    accepted_date: iso(given.from),
    accepted_features: consent.features,
    ...browser,
    accepted_documents: Object.fromEntries(documents),
  }
}
