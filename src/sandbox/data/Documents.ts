/**
 * Official documents of a session (section 2.7): how many there are, their identifiers, and their bytes,
 * created when they are downloaded. Equal identifiers give equal bytes.
 */
import type { Retrieval } from "../state/ResultsPlan.ts"
import { fingerprint } from "../state/Seeded.ts"

/** Features whose sources provide a report besides their records. */
const reporting: ReadonlySet<string> = new Set([
  "labor_check",
  "accounts_certificates",
  "public_document_verification",
])

export interface SessionDocument {
  readonly attachment_id: string
  readonly title: string
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
    attachment_id: fingerprint("attachment", ...bearer, index).slice(0, 24),
    title,
    media_type: "application/pdf",
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
