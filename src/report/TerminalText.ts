/**
 * The filter before a terminal: whatever a value of the service, a file or a table contains, it cannot move
 * the cursor, change colours, hide text or fill the screen. Control characters are shown as `\u001b`, as in
 * JSON; an overlong line is cut with a mark. Only terminals are written to through here: a pipe and a file
 * get every byte as it is.
 */
import { cutText } from "../service/TextBounds.ts"

/** Longer lines are cut: a screen of any size shows far less of one. */
const lineMax = 10_000

/** Our own colours, as `paint` writes them; no other escape codes pass. */
const ownColour = "\\u001b\\[(?:0|1|2|31|32|33)m"
/** Line feeds and tabs are kept; a carriage return elsewhere than before a line feed overwrites text. */
const control = "[^\\P{Cc}\\n\\t\\r]|\\r(?!\\n)|[\\p{Cf}\\p{Zl}\\p{Zp}\\p{Cs}]"
const anyControl = new RegExp(control, "gu")
const controlButColours = new RegExp(`(${ownColour})|${control}`, "gu")

const escaped = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`,
  ).join("")

/** `painted`: made by this program, which cleans values before it colours them. */
export const forTerminal = (text: string, painted: boolean): string => {
  const lines = text.length <= lineMax ? text : text.replace(/[^\n]+/g, (line) => cutText(line, lineMax))
  return painted
    ? lines.replace(
        controlButColours,
        (found: string, colour: string | undefined) => colour ?? escaped(found),
      )
    : lines.replace(anyControl, escaped)
}

/** A value on one line, wherever it is shown: no character in it moves, colours or hides another one. */
export const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, escaped)
