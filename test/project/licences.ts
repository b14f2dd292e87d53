/**
 * The licences of everything that the built command consists of: what the bundler really took in, module by
 * module, and the packages that it leaves to be loaded from node_modules. Most licences ask for their text
 * to go with every copy, so that a package without one stops the build.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"

export interface LicensedPackage {
  readonly name: string
  readonly version: string
  /** As its package.json says it. */
  readonly licence: string
  readonly text: string
}

interface Manifest {
  readonly name?: string
  readonly version?: string
  readonly license?: string
}

const manifestOf = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest

/** The folder of the package that a module belongs to; undefined for a module of our own. */
export const packageFolderOf = (modulePath: string): string | undefined => {
  if (!modulePath.includes("/node_modules/")) return undefined
  for (let folder = dirname(modulePath); !folder.endsWith("/node_modules"); folder = dirname(folder)) {
    // Inner package.json files only say how modules are to be read.
    const path = join(folder, "package.json")
    if (existsSync(path) && manifestOf(folder).version !== undefined) return folder
  }
  return undefined
}

const isText = (name: string): boolean => /^(?:licen[cs]es?|copying|notice)(?:[-.].*)?$/i.test(name)

/** A package that npm installs beside ours is handed over by its own authors, with what they put into it. */
const notBrought = "(It is installed beside this program, and its package brings no text.)"

/** Throws where a bundled package brings no text: which one, and what to do. */
export const licenceOf = (folder: string, isBundled: boolean): LicensedPackage => {
  const { name = "", version = "", license = "" } = manifestOf(folder)
  const texts = readdirSync(folder).filter(isText).toSorted()
  if (license === "" || (isBundled && texts.length === 0))
    throw new Error(`${name}@${version} brings no licence text: bundle another package, or none`)
  return {
    name,
    version,
    licence: license,
    text:
      texts.length === 0
        ? notBrought
        : texts.map((file) => readFileSync(join(folder, file), "utf8").trim()).join("\n\n"),
  }
}

const rule = "=".repeat(80)

/** Folders of packages, in any order, each as often as modules of it were taken in or loaded. */
export const licencesText = (bundled: Iterable<string>, loaded: Iterable<string>): string => {
  const inside = new Set(bundled)
  const beside = [...new Set(loaded)].filter((folder) => !inside.has(folder))
  const packages = [
    ...[...inside].map((folder) => licenceOf(folder, true)),
    ...beside.map((folder) => licenceOf(folder, false)),
  ]
  const keyOf = ({ name, version }: LicensedPackage) => `${name}@${version}`
  const sorted = packages.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  const head = "Nightjar contains or loads these packages. Each is its authors' work under its own licence.\n"
  const parts = sorted.map((one) => `${rule}\n${keyOf(one)}: ${one.licence}\n${rule}\n\n${one.text}\n`)
  return [head, ...parts].join("\n")
}
