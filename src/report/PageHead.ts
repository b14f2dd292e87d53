/**
 * The head of every page that is written: its style and its script are inside, and the page may load nothing
 * from anywhere, whatever a value in it contains (Content-Security-Policy).
 */
import { sha256 } from "../base/Sha256.ts"
import { Html, html, nothing } from "./Html.ts"

interface Head {
  readonly title: string
  readonly style: string
  readonly script?: string
}

const hashOf = (text: string): string => `'sha256-${sha256(text).toString("base64")}'`

/** Only this style and this script, by their hashes; no image, font, frame, form or connection. */
export const contentPolicy = ({ style, script }: Omit<Head, "title">): string =>
  [
    "default-src 'none'",
    `style-src ${hashOf(style)}`,
    ...(script === undefined ? [] : [`script-src ${hashOf(script)}`]),
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ")

/** Made in one piece: a space more, and it would not be the style that the policy allows. */
export const pageHead = (head: Head): Html =>
  html`<head>
    <meta charset="utf-8" />
    <meta http-equiv="Content-Security-Policy" content="${new Html(contentPolicy(head))}" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="robots" content="noindex" />
    <meta name="referrer" content="no-referrer" />
    <title>${head.title}</title>
    ${new Html(`<style>${head.style}</style>`)}
  </head>`

/** The script of the head's policy, for the end of the body. */
export const scriptElement = ({ script }: Pick<Head, "script">): Html =>
  script === undefined ? nothing : new Html(`<script>${script}</script>`)
