/**
 * `npm run promises -- [--full] [--without-tests] [--promise N] [--json]`: runs a sample of each campaign that has none
 * among the tests, or all of each with `--full`, and the tests that carry a promise's number, unless somebody runs all
 * tests anyway; then prints what each promise was tried by and what came of it. Exits 1 where one is violated, or
 * where a campaign gave no figure.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { Schema } from "effect"
import pLimit from "p-limit"
import { countByPromise, readFigures, type Count } from "./Figure.ts"
import { campaignsFor, filesNaming, promisesIn, readTable, testsOf, wordsOf } from "./PromiseSource.ts"
import type { Campaign } from "./PromiseSource.ts"
import { isSound, renderRows, rowOf, summaryOf, type CampaignEnd } from "./PromiseTable.ts"

const { values } = parseArgs({
  options: {
    full: { type: "boolean", default: false },
    "without-tests": { type: "boolean", default: false },
    promise: { type: "string", multiple: true },
    json: { type: "boolean", default: false },
  },
})

const root = fileURLToPath(new URL("../../", import.meta.url))
const note = (text: string): void => {
  if (!values.json) console.log(text)
}

/** The output of a program of ours, and how it ended; its complaints are told as they come. */
const runProgram = (
  words: ReadonlyArray<string>,
): Promise<{ readonly code: number; readonly output: string }> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...words], { cwd: root, stdio: ["ignore", "pipe", "inherit"] })
    const chunks: Array<Buffer> = []
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk))
    child.on("error", reject)
    child.on("close", (code) => resolve({ code: code ?? 1, output: Buffer.concat(chunks).toString("utf8") }))
  })

const linesShownMax = 40

const runCampaign = async (name: string, { command, sample, full }: Campaign): Promise<CampaignEnd> => {
  const startedAt = performance.now()
  const words = [...wordsOf(command), ...wordsOf(values.full ? full : sample), "--json"]
  note(`${name}: node ${words.join(" ")}`)
  const { code, output } = await runProgram(words)
  const seconds = (performance.now() - startedAt) / 1000
  const figures = readFigures(output)
  const hasFailed = figures?.some(({ failed }) => failed > 0) === true
  if (code !== 0) console.error(output.trimEnd().split("\n").slice(-linesShownMax).join("\n"))
  if (figures === undefined) return { broken: `it ended with ${code} and without figures`, seconds }
  if (code !== 0 && !hasFailed) return { broken: `it ended with ${code}`, seconds }
  return { figures, seconds }
}

const Report = Schema.fromJsonString(
  Schema.Struct({
    testResults: Schema.Array(
      Schema.Struct({
        assertionResults: Schema.Array(Schema.Struct({ fullName: Schema.String, status: Schema.String })),
      }),
    ),
  }),
)

/** The tests whose titles carry one of these numbers. */
const runTests = async (numbers: ReadonlyArray<number>): Promise<Readonly<Record<string, Count>>> => {
  const files = filesNaming(numbers, root)
  if (files.length === 0) return {}
  const folder = mkdtempSync(join(tmpdir(), "nightjar-promises-"))
  const path = join(folder, "tests.json")
  const pattern = `\\[promise (?:${numbers.join("|")})\\b`
  try {
    note(`tests: ${files.length} files with titles of these promises`)
    const runner = "node_modules/vitest/vitest.mjs"
    const words = [runner, "run", ...files, "-t", pattern, "--reporter=json", `--outputFile=${path}`]
    const { output } = await runProgram(words)
    note(output.trimEnd())
    const { testResults } = Schema.decodeUnknownSync(Report)(readFileSync(path, "utf8"))
    const ran = testResults
      .flatMap(({ assertionResults }) => assertionResults)
      .filter(({ status }) => status === "passed" || status === "failed")
    return countByPromise(
      ran.flatMap(({ fullName, status }) =>
        promisesIn(fullName)
          .filter((promise) => numbers.includes(promise))
          .map((promise) => ({ promise, failed: status === "failed" })),
      ),
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const main = async (): Promise<boolean> => {
  const table = readTable()
  const numbers = values.promise?.map(Number)
  const promises = table.promises.filter(({ number }) => numbers?.includes(number) ?? true)
  if (promises.length === 0) {
    console.error(
      `there is no promise ${values.promise?.join(", ")}; there are 1 to ${table.promises.length}`,
    )
    process.exit(2)
  }
  const campaigns: Record<string, CampaignEnd> = {}
  const campaignOf: Record<string, string> = {}
  // Samples leave a processor idle; whole campaigns use all of them.
  const atOnce = pLimit(values.full ? 1 : 2)
  const runs = [...campaignsFor(table, promises)].map(([name, campaign]) =>
    atOnce(async () => {
      for (const figure of campaign.figures) campaignOf[figure] = name
      const sampledBy = values.full ? undefined : testsOf(campaign)
      campaigns[name] = sampledBy === undefined ? await runCampaign(name, campaign) : { sampledBy }
    }),
  )
  await Promise.all(runs)
  const isWithout = values["without-tests"]
  const tests = isWithout ? {} : await runTests(promises.map(({ number }) => number))
  const filesLeft = (number: number): number => (isWithout ? filesNaming([number], root).length : 0)
  const rows = promises.map((promise) =>
    rowOf(promise, { campaigns, campaignOf, tests, filesLeft: filesLeft(promise.number) }),
  )
  for (const line of values.json ? [] : ["", ...renderRows(rows), ""]) console.log(line)
  console.log(values.json ? JSON.stringify({ promises: rows }) : summaryOf(rows))
  return isSound(rows)
}

process.exitCode = (await main()) ? 0 : 1
