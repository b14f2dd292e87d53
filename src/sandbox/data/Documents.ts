/**
 * Official documents of a session (section 2.7): how many there are, their identifiers, and their bytes,
 * created when they are downloaded. Equal identifiers give equal bytes.
 */
import { Struct } from "effect"
import { sha256Hex } from "../../base/Hashes.ts"
import { flowMomentOf, type FlowSession } from "../state/FlowTimeline.ts"
import { fingerprint, seeded } from "../state/Reading.ts"
import { iso } from "../state/Timeline.ts"
import type { Retrieval } from "../state/ResultsPlan.ts"

/** Features whose sources provide a report besides their records. */
const reporting: ReadonlySet<string> = new Set([
  "labor_check",
  "accounts_certificates",
  "public_document_verification",
])

export type SessionDocument = Readonly<Record<"title" | "attachment_id", string>> & {
  readonly media_type: "application/pdf"
}

/** The documents of a source whose records are complete. */
export const documentsOf = ({ started }: Retrieval): ReadonlyArray<SessionDocument> => {
  const { results, session_id, source_id } = started
  const bearer = source_id === undefined ? [session_id] : [session_id, source_id]
  const titles = [
    ...results.features
      .filter(({ code, records }) => reporting.has(code) && records > 0)
      .map(({ code }) => code),
    ...Array.from({ length: results.documents }, (_, index) => `documento ${index + 1}`),
  ]
  return titles.map((title, index) => ({
    title,
    media_type: "application/pdf",
    attachment_id: fingerprint("attachment", ...bearer, index).slice(0, 24),
  }))
}

/** A one-page PDF that shows its title; its size differs from document to document. */
export const documentBytes = (document: SessionDocument): Uint8Array => {
  const filler = `% ${document.attachment_id}\n`.repeat(
    1 + (Number.parseInt(document.attachment_id.slice(0, 2), 16) % 64),
  )
  const page = `BT /F1 14 Tf 60 760 Td (${document.title.replaceAll(/[()\\]/g, "")}) Tj ET`
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R " +
      "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
    `<< /Length ${page.length} >>\nstream\n${page}\nendstream`,
  ]
  let body = `%PDF-1.4\n${filler}`
  const offsets = objects.map((object, index) => {
    const offset = body.length
    body += `${index + 1} 0 obj\n${object}\nendobj\n`
    return offset
  })
  const rows = offsets.map((offset) => `${String(offset).padStart(10, "0")} 00000 n \n`).join("")
  body += `xref\n0 5\n0000000000 65535 f \n${rows}trailer\n<< /Size 5 /Root 1 0 R >>\n`
  body += `startxref\n${body.lastIndexOf("xref\n0 5")}\n%%EOF\n`
  return new TextEncoder().encode(body)
}

// 2.7, consent: the documents of the widget and what was accepted; an execution's customer is invented.

/** Not shown; own choice: two documents, both of which must be accepted; a hash is one of the content. */
export const consentDocuments = [
  {
    document_id: "terms-es",
    version: "2.1",
    title: "Condiciones de uso",
    content:
      "Condiciones de uso (documento de prueba). El cliente pide que se lean los datos que ha elegido.",
  },
  {
    document_id: "privacy-es",
    version: "3.0",
    title: "Información sobre protección de datos",
    content: "Protección de datos (documento de prueba). Los datos se usan una vez y se borran a petición.",
  },
].map((document) => ({ ...document, hash: sha256Hex(document.content) }))

export const defaultSignature = {
  signature_provider: "nightjar-sandbox",
  signature_metadata: { channel: "widget" },
}

export const usualBrowser = {
  user_agent: "Mozilla/5.0 (X11; Linux x86_64) Sandbox/1.0",
  origin: "https://widget.sandbox.invalid",
}

/** For the session of an execution. */
export const inventedConsent = (seed: number, { started }: Retrieval) => {
  const { customer_id, results, at } = started
  const draw = seeded("consent", seed, customer_id)
  const accepted = iso(at - draw.int(5, 90) * 60_000)
  const documents = consentDocuments.map(({ document_id, version, hash }) => {
    const signature_metadata = { ...defaultSignature.signature_metadata, pages: draw.int(1, 6) }
    return [document_id, { version, hash, sign_date: accepted, ...defaultSignature, signature_metadata }]
  })
  return {
    accepted_date: accepted,
    accepted_features: results.features.map(({ code }) => code),
    user_ip: `203.0.113.${draw.int(1, 254)}`,
    ...usualBrowser,
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
  const browser = start === undefined ? {} : Struct.omit(start, ["_tag"])
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
