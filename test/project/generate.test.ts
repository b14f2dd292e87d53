/**
 * Generated files: written once, silent while current, named when stale, and never a crash.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { generate } from "./generate.ts"

const root = mkdtempSync(join(tmpdir(), "generate-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

it("generate writes what is missing or stale, and with check only names it, as it does a missing generator", async () => {
  writeFileSync(
    join(root, "source.mjs"),
    'export const shape = () => ({ a: 1 })\nexport const text = "hello\\n"\n',
  )
  const list = [
    { path: "schemas/shape.json", from: "source.mjs", name: "shape" },
    { path: "schemas/text.md", from: "source.mjs", name: "text" },
  ]
  expect(await generate(root, list, true)).toEqual([
    "schemas/shape.json is out of date: npm run generate",
    "schemas/text.md is out of date: npm run generate",
  ])
  expect(await generate(root, list, false)).toEqual([])
  expect(readFileSync(join(root, "schemas/shape.json"), "utf8")).toBe('{\n  "a": 1\n}\n')
  expect(await generate(root, list, true)).toEqual([])
  writeFileSync(join(root, "schemas/text.md"), "hello, changed by hand\n")
  expect(await generate(root, list, true)).toEqual(["schemas/text.md is out of date: npm run generate"])
  writeFileSync(join(root, "empty.mjs"), "export {}\n")
  const missing = [{ path: "x.json", from: "empty.mjs", name: "shape" }]
  expect(await generate(root, missing, true)).toEqual([
    "x.json cannot be derived: empty.mjs exports no shape",
  ])
})
