/**
 * The built command on a Node that can run it, on one that cannot, and in a checkout that holds no program
 * yet.
 */
import { spawnSync } from "node:child_process"
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { kubernetesText } from "../../src/cli/Timers.ts"
import { bundle } from "./bundle.ts"

const root = mkdtempSync(join(tmpdir(), "bundle-"))
const command = join(root, "dist/nightjar.js")
let built: ReadonlyArray<string> | undefined
let before: ReadonlyArray<string> | undefined

beforeAll(async () => {
  before = await bundle(root)
  mkdirSync(join(root, "src/records"), { recursive: true })
  writeFileSync(join(root, "package.json"), '{"type":"module"}')
  writeFileSync(
    join(root, "src/main.ts"),
    'import { word } from "./records/Word.ts"\n' +
      "export const start = () => {\n" +
      'console.log(word, new URL("../schemas/", import.meta.url).pathname, ...process.argv.slice(2))\n' +
      "process.exitCode = 3\n}\n",
  )
  writeFileSync(join(root, "src/records/Word.ts"), 'export const word: string = "ran"\n')
  writeFileSync(join(root, "src/records/PackWorker.ts"), "export const packed = 1\n")
  built = await bundle(root)
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** What an older Node lacks ends a program that imports it by name, before a line of it runs. */
const withoutNews = `require("node:module").registerHooks({ resolve: (name, context, next) =>
  name === "node:module" ? { url: "data:text/javascript,export default {}", shortCircuit: true } : next(name, context) })`

/** The launcher as an older Node would see it. */
const onOldNode = (args: ReadonlyArray<string>, env: NodeJS.ProcessEnv = {}) => {
  const older = `{ Object.defineProperty(process.versions, "node", { value: "20.20.2" }); ${withoutNews} }`
  const preload = join(root, "older.cjs")
  writeFileSync(preload, `if (process.env.NIGHTJAR_HANDED_OVER === undefined || process.env.STAY) ${older}\n`)
  const run = spawnSync(process.execPath, ["--require", preload, command, ...args], {
    encoding: "utf8",
    env: { ...process.env, NODE_OPTIONS: "", ...env },
  })
  return { status: run.status, stdout: run.stdout, stderr: run.stderr }
}

describe("bundle", () => {
  it("writes an executable command, the program and each worker, flat in dist; nothing if there is no program", () => {
    expect(before).toBeUndefined()
    expect(built).toEqual(["nightjar.js", "THIRD-PARTY-LICENSES.txt", "PackWorker.js", "program.js"])
    expect(statSync(command).mode & 0o777).toBe(0o755)
  })

  it("runs the program with its arguments, its exit code, and paths that mean the same as in src", () => {
    const run = spawnSync(command, ["status", "--json"], { encoding: "utf8", env: process.env })
    expect([run.status, run.stdout]).toEqual([3, `ran ${root}/schemas/ status --json\n`])
  })

  it("says which version is needed on an old Node, and exits 2", () => {
    const run = onOldNode(["status"])
    expect([run.status, run.stdout]).toEqual([2, ""])
    expect(run.stderr).toBe(
      `nightjar needs Node 22.19 or newer, and this is ${process.version}. Nothing was started. ` +
        "Put a newer one on PATH, or run `npm ci` in a checkout: it brings its own.\n",
    )
  })

  it("says how many open files it needs if there are fewer, and exits 2", () => {
    const few = spawnSync("/bin/sh", ["-c", `ulimit -n 64; exec "${process.execPath}" "${command}" status`], {
      encoding: "utf8",
      env: { ...process.env, NODE_OPTIONS: "" },
    })
    expect([few.status, few.stdout, few.stderr]).toEqual([
      2,
      "",
      "nightjar needs 256 open files, and this process may have 64; nothing was started. " +
        "Raise the limit, for example with `ulimit -n 4096`, and run the command again.\n",
    ])
  })

  it("uses the checkout's own Node if there is one, with the same arguments and exit code", () => {
    const own = join(root, "node_modules/node/bin")
    mkdirSync(own, { recursive: true })
    writeFileSync(
      join(own, "node"),
      `#!/bin/sh\nexec "${process.execPath}" --require "${root}/older.cjs" "$@"\n`,
    )
    chmodSync(join(own, "node"), 0o755)
    expect(onOldNode(["a b"])).toEqual({ status: 3, stdout: `ran ${root}/schemas/ a b\n`, stderr: "" })
    // An own Node that is old as well is not asked for ever.
    expect(onOldNode(["a"], { STAY: "1" }).status).toBe(2)
    rmSync(join(root, "node_modules"), { recursive: true })
  })
})

describe("the licences beside the command", () => {
  const checkout = mkdtempSync(join(tmpdir(), "licences-"))
  afterAll(() => rmSync(checkout, { recursive: true, force: true }))

  const install = (name: string, files: Readonly<Record<string, string>>) => {
    const folder = join(checkout, "node_modules", name)
    mkdirSync(join(folder, "esm"), { recursive: true })
    const manifest = { name, version: "1.2.3", license: "MIT", type: "module", main: "esm/index.js" }
    writeFileSync(join(folder, "package.json"), JSON.stringify(manifest))
    // How modules are to be read is said by package.json files that are no package's.
    writeFileSync(join(folder, "esm/package.json"), '{"type":"module"}')
    writeFileSync(
      join(folder, "esm/index.js"),
      `export const ${/\w+$/.exec(name)?.[0]} = () => console.log(process.argv)\n`,
    )
    for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text)
  }
  const main = (text: string) => {
    mkdirSync(join(checkout, "src"), { recursive: true })
    writeFileSync(join(checkout, "package.json"), '{"type":"module"}')
    writeFileSync(join(checkout, "src/main.ts"), text)
  }

  it("are those of every bundled or loaded package, and of no other", async () => {
    install("@some/inside", { LICENSE: "Copyright Inside\n", "NOTICE.txt": "Notice Inside" })
    install("unused", { LICENSE: "Copyright Unused" })
    install("parquet-wasm", {})
    main('import { inside } from "@some/inside"\nimport { wasm } from "parquet-wasm"\ninside(wasm)\n')
    await bundle(checkout)
    const rule = "=".repeat(80)
    expect(readFileSync(join(checkout, "dist/THIRD-PARTY-LICENSES.txt"), "utf8")).toBe(
      [
        "Nightjar contains or loads these packages. Each is its authors' work under its own licence.\n",
        `${rule}\n@some/inside@1.2.3: MIT\n${rule}\n\nCopyright Inside\n\nNotice Inside\n`,
        `${rule}\nparquet-wasm@1.2.3: MIT\n${rule}\n\n(It is installed beside this program, and its package brings no text.)\n`,
      ].join("\n"),
    )
  })

  it("stop the build if a bundled package has none", async () => {
    install("nameless", {})
    main('import { nameless } from "nameless"\nnameless()\n')
    await expect(bundle(checkout)).rejects.toThrow(
      "nameless@1.2.3 brings no licence text: bundle another package, or none",
    )
  })
})

describe("what is shipped", () => {
  const checkout = fileURLToPath(new URL("../../", import.meta.url))
  const place = mkdtempSync(join(tmpdir(), "shipped-"))
  afterAll(() => rmSync(place, { recursive: true, force: true }))

  it("as a package has neither variables nor secrets of this machine in it", () => {
    copyFileSync(join(checkout, "package.json"), join(place, "package.json"))
    const files = [
      "dist/nightjar.js",
      "schemas/ends.md",
      "jobs/demo.yaml",
      "jobs/.env",
      "jobs/secrets/a.pin",
      ".env",
    ]
    for (const file of [...files, "output/ledger.sqlite"]) {
      mkdirSync(dirname(join(place, file)), { recursive: true })
      writeFileSync(join(place, file), "x")
    }
    const pack = ["pack", "--dry-run", "--json", "--ignore-scripts"]
    const { stdout } = spawnSync("npm", pack, { cwd: place, encoding: "utf8" })
    const [{ files: packed }] = JSON.parse(stdout) as [
      { readonly files: ReadonlyArray<{ readonly path: string }> },
    ]
    expect(packed.map(({ path }) => path).toSorted()).toEqual([
      "dist/nightjar.js",
      "jobs/demo.yaml",
      "package.json",
      "schemas/ends.md",
    ])
  })

  it("as an image has everything that the package has", () => {
    const { files } = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8")) as {
      readonly files: ReadonlyArray<string>
    }
    const dockerfile = readFileSync(join(checkout, ".github/Dockerfile"), "utf8")
    const shipped = files.filter((file) => !file.startsWith("!"))
    const isCopied = (file: string) =>
      dockerfile.includes(`COPY --from=build /build/${file} /opt/nightjar/${file}\n`)
    expect(shipped.filter((file) => !isCopied(file))).toEqual([])
  })

  it("as an image runs as the user and from the paths that a CronJob names", () => {
    const dockerfile = readFileSync(join(checkout, ".github/Dockerfile"), "utf8")
    const timer = { jobs: ["small"], job_paths: [], output: "", env_file: undefined, folder: "", command: [] }
    const text = kubernetesText({
      timer: {
        ...timer,
        path: undefined,
        credentials: [],
        times: ["22:30"],
        hasNight: true,
        waitMinutes: 480,
        timezone: "UTC",
        machine_zone: "UTC",
      },
      variables: [],
      jobs: ["small.yaml"],
      files: ["small.yaml"],
      image: "nightjar:1",
      schemas: [],
    })
    const user = /^USER (\d+):(\d+)$/m.exec(dockerfile)
    expect([user?.[1], user?.[2]]).toEqual([
      /runAsUser: (\d+)/.exec(text)?.[1],
      /runAsGroup: (\d+)/.exec(text)?.[1],
    ])
    expect(/^WORKDIR (\/var\S+)$/m.exec(dockerfile)?.[1]).toBe(/mountPath: (\/var\S+)/.exec(text)?.[1])
  })
})
