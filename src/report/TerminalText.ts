/**
 * What stands in front of a terminal: whatever a value of the service, of a file or of a table holds, it
 * cannot move the cursor, change colours, hide text or fill the screen. Control characters are shown as
 * `\u001b`, which is also how JSON spells them; a line beyond any use is cut with a mark. Only a terminal is
 * written to through here: a pipe and a file get every byte as it is.
 */
import { cutText } from "../contract/TextBounds.ts"

/** Longer lines are cut: a screen of any size shows far less of one. */
const lineMax = 10_000

/** Our own colours, as `paint` writes them; nothing else of the kind is let through. */
const ownColour = "\\u001b\\[(?:0|1|2|31|32|33)m"
/** A line end and a tab stay; a return stays before a line feed only, elsewhere it overwrites the line. */
const control = "[^\\P{Cc}\\n\\t\\r]|\\r(?!\\n)|[\\p{Cf}\\p{Zl}\\p{Zp}\\p{Cs}]"
const anyControl = new RegExp(control, "gu")
const controlButColours = new RegExp(`(${ownColour})|${control}`, "gu")

const escaped = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`,
  ).join("")

/** `painted`: the text was made by this program, which colours the values in it after making them plain. */
export const forTerminal = (text: string, painted: boolean): string => {
  const lines = text.length <= lineMax ? text : text.replace(/[^\n]+/g, (line) => cutText(line, lineMax))
  return painted
    ? lines.replace(
        controlButColours,
        (found: string, colour: string | undefined) => colour ?? escaped(found),
      )
    : lines.replace(anyControl, escaped)
}
