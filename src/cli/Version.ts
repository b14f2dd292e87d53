/**
 * The version of the program, from its package: `nightjar --version`, and every run records which version
 * ran it. The file is one level above both `src/` and `dist/`.
 */
import { readFileSync } from "node:fs"

const readVersion = (): string => {
  // The bundle is in dist/, the sources in src/cli/: the package is one or two levels up.
  for (const above of ["../package.json", "../../package.json"]) {
    try {
      const text = readFileSync(new URL(above, import.meta.url), "utf8")
      const parsed: unknown = JSON.parse(text)
      if (typeof parsed === "object" && parsed !== null && "version" in parsed && "name" in parsed)
        if (parsed.name === "nightjar" && typeof parsed.version === "string") return parsed.version
    } catch {
      continue
    }
  }
  return "0.0.0"
}

export const toolVersion: string = readVersion()
