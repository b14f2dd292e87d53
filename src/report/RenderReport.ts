/**
 * The report of a run as one HTML file that needs nothing else: its style and its small script are inside.
 * Pure.
 */
import { html, nothing } from "./Html.ts"
import { pageHead, scriptElement } from "./PageHead.ts"
import type { Report } from "./Report.ts"
import { changesSection, headSection, worklistSection } from "./ReportSections.ts"
import { callsSection, coverageSection, deletionsSection, enginesSection } from "./ReportTables.ts"
import { timelineSection } from "./ReportTimeline.ts"
import { reportScript } from "./ReportScript.ts"
import { reportStyle } from "./ReportStyle.ts"
import { clockIn } from "./ReportText.ts"

const head = { style: reportStyle, script: reportScript }

const links = [
  ["changes", "What to do"],
  ["work", "Worklist"],
  ["timeline", "Timeline"],
  ["engines", "Engines"],
  ["coverage", "Coverage"],
  ["calls", "Calls"],
  ["deletions", "Deletions"],
] as const

/** The place of the newest fact that a page was made of; 0 if it does not say so. */
export const newestFactIn = (page: string): number =>
  Number(/<body data-newest-fact="(\d+)">/.exec(page)?.[1] ?? 0)

export const renderReport = (report: Report): string => {
  const clock = clockIn(report.timezone)
  const hasWork = report.worklist.length > 0
  const nav = links.map(([id, title]) =>
    id === "work" && !hasWork ? nothing : html`<a href="#${id}">${title}</a>`,
  )
  const page = html`<!doctype html>
    <html lang="en">
      ${pageHead({ ...head, title: report.summary.run_id })}
      <body data-newest-fact="${report.newest}">
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
        ${scriptElement(head)}
      </body>
    </html> `
  return `${page.text.trim()}\n`
}
