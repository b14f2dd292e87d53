/**
 * The report of a run as one HTML file that needs nothing else: its style and its small script are inside,
 * and the page may load nothing from anywhere, whatever a value in it contains (Content-Security-Policy).
 * Pure.
 */
import { sha256 } from "../foundation/Sha256.ts"
import { Html, html, nothing } from "./Html.ts"
import type { Report } from "./Report.ts"
import { changesSection, headSection, worklistSection } from "./ReportSections.ts"
import { callsSection, coverageSection, deletionsSection, enginesSection } from "./ReportTables.ts"
import { timelineSection } from "./ReportTimeline.ts"
import { reportScript } from "./ReportScript.ts"
import { reportStyle } from "./ReportStyle.ts"
import { clockIn } from "./ReportText.ts"

const hashOf = (text: string): string => `'sha256-${sha256(text).toString("base64")}'`

/** Only this style and this script, by their hashes; no image, font, frame, form or connection. */
export const contentPolicy = [
  "default-src 'none'",
  `style-src ${hashOf(reportStyle)}`,
  `script-src ${hashOf(reportScript)}`,
  "base-uri 'none'",
  "form-action 'none'",
].join("; ")

/** Made in one piece: a space more, and they would not be the ones that the policy allows. */
const styleElement = new Html(`<style>${reportStyle}</style>`)
const scriptElement = new Html(`<script>${reportScript}</script>`)

const links = [
  ["changes", "What to do"],
  ["work", "Worklist"],
  ["timeline", "Timeline"],
  ["engines", "Engines"],
  ["coverage", "Coverage"],
  ["calls", "Calls"],
  ["deletions", "Deletions"],
] as const

export const renderReport = (report: Report): string => {
  const clock = clockIn(report.timezone)
  const hasWork = report.worklist.length > 0
  const nav = links.map(([id, title]) =>
    id === "work" && !hasWork ? nothing : html`<a href="#${id}">${title}</a>`,
  )
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${new Html(contentPolicy)}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <meta name="referrer" content="no-referrer" />
        <title>${report.summary.run_id}</title>
        ${styleElement}
      </head>
      <body>
        <a class="skip" href="#changes">Skip to what to do</a> ${headSection(report, clock)}
        <nav aria-label="Sections">${nav}</nav>
        <main>
          ${changesSection(report)} ${worklistSection(report)} ${timelineSection(report, clock)}
          ${enginesSection(report)} ${coverageSection(report)} ${callsSection(report)}
          ${deletionsSection(report)}
        </main>
        <footer>
          <h2>More</h2>
          <p>
            <code>nightjar explain ID</code> tells everything about a customer, task or reason;
            <code>nightjar report ${report.summary.run_id}</code> writes this page again.
          </p>
        </footer>
        ${scriptElement}
      </body>
    </html> `
  return `${page.text.trim()}\n`
}
