/**
 * The seeds of the oracle by name, longest first, and what each leaves; and beside them `program`: what `--help` says,
 * and the files of `schemas/`, which `npm run generated` keeps equal to the code.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { stripVTControlCharacters } from "node:util"
import { filesBelow } from "../../src/tables/Manifest.ts"
import { helpPages } from "../project/helpPages.ts"
import type { PlantedServices } from "../simulation/NightLayers.ts"
import { textsOfFolder } from "./Scenes.ts"
import { packageFolder, type Texts } from "./Texts.ts"
import { textsOfAccounts, textsOfNight } from "./VirtualNights.ts"
import { families } from "../records/families.ts"

const folderSeeds = 12
const nightSeeds = 168
const accountSeeds = 20

const named = (kind: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${kind}-${String(index + 1).padStart(3, "0")}`)

export const seedNames: ReadonlyArray<string> = [
  "program",
  ...named("folder", folderSeeds),
  ...named("night", nightSeeds),
  ...named("accounts", accountSeeds),
]

const textsOfProgram = async (): Promise<Texts> => {
  const pages = Object.entries((await helpPages(packageFolder)) ?? {}).filter(([asked]) =>
    asked.endsWith("--help"),
  )
  const schemas = join(packageFolder, "schemas")
  return new Map([
    ...pages.map(([asked, page]) => [asked, stripVTControlCharacters(page)] as const),
    ...filesBelow(schemas)
      // The names of tests, and what is written for people to read.
      .filter((path) => path !== "conformance.md" && !path.startsWith("pages/"))
      .map((path) => [`schemas/${path}`, readFileSync(join(schemas, path), "utf8")] as const),
  ])
}

/** `plant` is what somebody does wrong in a night or a folder. */
export const textsOf = async (name: string, plant?: PlantedServices): Promise<Texts> => {
  const [kind, number] = name.split("-")
  const seed = Number(number)
  if (kind === "folder") return textsOfFolder(seed, plant)
  if (kind === "night") return textsOfNight(seed, families, plant)
  if (kind === "accounts") return textsOfAccounts(seed)
  if (kind === "program") return textsOfProgram()
  throw new Error(`there is no seed ${name}`)
}
