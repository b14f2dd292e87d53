/**
 * A drafted record schema as the YAML that people complete: its notes as comments before it, a line per
 * column. What it says is read back with the schemas' own parser before anybody sees it.
 */
import { Effect } from "effect"
import { Document, isMap, isSeq } from "yaml"
import type { Draft } from "./DraftSchema.ts"
import { parseRecordSchema } from "./RecordSchema.ts"

/** Columns and items are short enough for a line each; a table of its own is not. */
const oneLine = (node: unknown): void => {
  if (isMap(node)) for (const { value } of node.items) if (isMap(value)) value.flow = true
}

/** A defect if the parser refuses it: then the draft is of no use. */
export const draftText = Effect.fn("DraftText.of")(function* ({ file, notes }: Draft, about: string) {
  const document = new Document(file)
  document.commentBefore = [about, ...notes].map((note) => ` ${note}`).join("\n")
  oneLine(document.get("columns"))
  const children = document.get("children")
  if (isMap(children))
    for (const { value } of children.items) {
      if (!isMap(value)) continue
      oneLine(value.get("columns"))
      const item = value.get("item")
      if (isMap(item)) item.flow = true
    }
  for (const name of ["sub_families", "features", "key", "fetched"]) {
    const list = document.get(name)
    if (isSeq(list)) list.flow = true
  }
  const text = document.toString({ lineWidth: 0, flowCollectionPadding: true })
  yield* Effect.orDie(parseRecordSchema(`${file.table}.yaml`, text))
  return text
})
