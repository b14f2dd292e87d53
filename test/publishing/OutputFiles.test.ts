import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { nodeFiles } from "../../src/publishing/OutputFiles.ts"

const root = mkdtempSync(join(tmpdir(), "output-files-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

describe("what is published", () => {
  it("has the mode that the job asks for, whatever was there before and whatever the machine takes away [promise 12 modes]", () => {
    const file = join(root, "manifest.json.tmp")
    writeFileSync(file, "left behind")
    chmodSync(file, 0o666)
    nodeFiles.write(file, "new", 0o600)
    const folder = join(root, "tables")
    mkdirSync(folder)
    chmodSync(folder, 0o777)
    nodeFiles.makeFolder(folder, 0o750)
    // No umask leaves a bit for everybody: only a mode that is set can have it.
    const open = join(root, "open.json")
    nodeFiles.write(open, "new", 0o666)
    assert.deepStrictEqual([file, folder, open].map(modeOf), ["600", "750", "666"])
  })
})
