/**
 * Builds the command: `dist/nightjar.js`, a launcher that any Node can read, and beside it `dist/program.js`,
 * the bundled program (starting it unbundled takes several times as long). Everything lands flat in one
 * folder one level below the root, so that `new URL("../schemas/", import.meta.url)` means the same in
 * `src/main.ts` and in the bundle. What `--help` prints is written there too, for the launcher to print. A
 * module named `…Worker.ts` becomes a file of its own, `dist/…Worker.js`, because a worker thread or process
 * is started by its path.
 */
import { chmodSync, copyFileSync, existsSync, globSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import { rolldown, type Plugin } from "rolldown"
import { helpPages } from "./helpPages.ts"
import { licencesText, packageFolderOf } from "./licences.ts"

/**
 * Native or WebAssembly packages find their binaries beside themselves: they stay in node_modules, and package.json
 * lists them, because only what it lists can be loaded from `dist` wherever it is installed. What is JavaScript is
 * bundled: DuckDB's comes in 180 files and undici's in 90, which cost some 50 and 20 ms of processor time to load.
 */
const external = [/^node:/, /^@duckdb\/node-bindings/, /^parquet-wasm/]

/** Effect hands undici on by `export *`, which finds no names in a bundled CommonJS module: here is the one it takes. */
const undiciByName: Plugin = {
  name: "undici-by-name",
  load: (id) =>
    id.endsWith("/@effect/platform-node/dist/Undici.js")
      ? 'import undici from "undici"\nexport const { Agent } = undici\n'
      : null,
}

/** Effect makes it when it is loaded, for 7 ms of processor time, and uses it for help alone. */
const segmenterLater: Plugin = {
  name: "segmenter-later",
  transform: (code, id) => {
    if (!id.endsWith("/effect/dist/cli/CliOutput.js")) return null
    const made = /^const graphemeSegmenter = (.*?\));$/ms
    const used = "graphemeSegmenter.segment("
    if (!made.test(code) || !code.includes(used))
      throw new Error(`${id} makes its segmenter otherwise by now`)
    return code
      .replace(made, "let graphemeSegmenter;\nconst segmenter = () => (graphemeSegmenter ??= $1);")
      .replaceAll(used, "segmenter().segment(")
  },
}

/** What is loaded before a command is named, and for one that looks at a run. */
const beginning = /\/src\/(?:main|cli\/commands\/Status|ledger\/Ledger)\.ts$/

/** Whether a module is among them, once all are parsed. */
const loadedFirst = () => {
  const importsOf = new Map<string, ReadonlyArray<string>>()
  const found = new Set<string>()
  const find = (id: string): void => {
    if (found.has(id)) return
    found.add(id)
    importsOf.get(id)?.forEach(find)
  }
  const noteImports: Plugin = {
    name: "note-imports",
    moduleParsed: ({ id, importedIds }) => void importsOf.set(id, importedIds),
    renderStart: () => [...importsOf.keys()].filter((id) => beginning.test(id)).forEach(find),
  }
  return { noteImports, isLoaded: (id: string): boolean => found.has(id) }
}

const licencesName = "THIRD-PARTY-LICENSES.txt"
/** Read by the launcher. */
const pagesName = "help.json"

/** Of a package that is left in node_modules; undefined for Node's own modules and for other files of ours. */
const loadedFolderOf = (root: string, imported: string): string | undefined => {
  if (imported.startsWith("node:") || imported.startsWith(".")) return undefined
  const name = /^(?:@[^/]+\/)?[^/]+/.exec(imported)?.[0] ?? imported
  const folder = join(root, "node_modules", name)
  return existsSync(folder) ? folder : undefined
}

/** Returns the names of the files written, or undefined when the checkout holds no program. */
export const bundle = async (root: string): Promise<ReadonlyArray<string> | undefined> => {
  const main = join(root, "src/main.ts")
  if (!existsSync(main)) return undefined
  const workers = globSync("src/**/*Worker.ts", { cwd: root }).map((path) => [
    basename(path, ".ts"),
    join(root, path),
  ])
  const dist = join(root, "dist")
  rmSync(dist, { recursive: true, force: true })
  const { noteImports, isLoaded } = loadedFirst()
  const build = await rolldown({
    input: { program: main, ...Object.fromEntries(workers) },
    platform: "node",
    external,
    plugins: [undiciByName, segmenterLater, noteImports],
    // What is imported only when it is needed may still be in the file of its importer.
    checks: { ineffectiveDynamicImport: false },
    tsconfig: false,
  })
  const { output } = await build.write({
    dir: dist,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
    // Traces of a defect name our functions; other names only make the file longer to read.
    minify: { compress: true, mangle: { keepNames: true } },
    // One file: each of 50 cost as much to find and read as its modules to run.
    codeSplitting: { groups: [{ name: "common", test: isLoaded, minShareCount: 2 }] },
  })
  await build.close()
  const chunks = output.filter((file) => file.type === "chunk")
  const modules = chunks.flatMap(({ modules: taken }) => Object.keys(taken))
  const loaded = chunks.flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports])
  const inside = modules.map(packageFolderOf).filter((folder) => folder !== undefined)
  const installed = loaded.map((name) => loadedFolderOf(root, name)).filter((folder) => folder !== undefined)
  writeFileSync(join(dist, licencesName), licencesText(inside, installed))
  const pages = await helpPages(root)
  if (pages !== undefined) writeFileSync(join(dist, pagesName), JSON.stringify(pages))
  const command = join(dist, "nightjar.js")
  copyFileSync(fileURLToPath(new URL("launcher.js", import.meta.url)), command)
  chmodSync(command, 0o755)
  const beside = pages === undefined ? [licencesName] : [licencesName, pagesName]
  return ["nightjar.js", ...beside, ...output.map((file) => file.fileName)]
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const files = await bundle(fileURLToPath(new URL("../../", import.meta.url)))
  console.error(
    files === undefined
      ? "bundle: there is no src/main.ts yet"
      : `bundle: dist/nightjar.js and ${files.length - 1} files beside it`,
  )
}
