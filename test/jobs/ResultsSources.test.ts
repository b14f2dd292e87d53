/**
 * Results sources from a job's folder: which rows come out, and every mistake at its place, in words that say
 * what to write.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { builtInSources, flowResultsSource, profileSource } from "../../src/service/FlowResults.ts"
import { makeFindings } from "../../src/jobs/Problem.ts"
import { differences, loadResultsSources } from "../../src/jobs/ResultsSources.ts"
import { load, smallJob } from "./loading.ts"
import { effect, withLayer } from "../harness/Steps.ts"

const inFiles = withLayer(NodeServices.layer)

const job = `${smallJob}customers: [{ id: c-1 }]\nschemas: ./own\n`
const withRows = (
  rows: Readonly<Record<string, string>>,
  environment: Readonly<Record<string, string>> = {},
) =>
  load(job, {
    environment,
    files: Object.fromEntries(Object.entries(rows).map(([name, text]) => [`own/results/${name}`, text])),
  })

const income =
  "path: /executions/results/{execution_id}/income/v1/records\nfamilies: [income:*]\nfinal: always\n"
const incomeSource = {
  name: "income",
  enabled: true,
  api: "base_url",
  path: "/executions/results/{execution_id}/income/v1/records",
  families: ["income:*"],
  records: ["records", "data", "body"],
  final: "always",
  counts: "sub_family",
  nothing: [404],
  attachments: false,
}

describe("results sources that load", () => {
  effect(
    "change only the keys that a built-in row's file sets, and come before the job's own, by name",
    function* () {
      const loading = yield* withRows({
        "work.yaml": income.replaceAll("income", "work"),
        "income.yaml": income,
        "profile.yaml": "records: [record]\n",
        "flow_results.yaml": "enabled: false\n",
        "README.md": "nobody's row",
      })
      const work = JSON.parse(JSON.stringify(incomeSource).replaceAll("income", "work")) as unknown
      expect(loading).toMatchObject({ errors: [], warnings: [] })
      expect((loading.job as { readonly sources: unknown }).sources).toEqual([
        { ...flowResultsSource, enabled: false },
        { ...profileSource, records: ["record"] },
        incomeSource,
        work,
      ])
    },
  )

  effect("are the built-in rows if a file of one is empty, or the folder has no `results`", function* () {
    const empty = yield* withRows({ "profile.yaml": "# nothing yet\n" })
    const none = yield* load(job, { files: { "own/family.yaml": "" } })
    expect(empty).toMatchObject({ errors: [], warnings: [], job: { sources: builtInSources } })
    expect(none).toMatchObject({ errors: [], warnings: [], job: { sources: builtInSources } })
  })

  effect("take `${NAME}` from the environment, and may read the path of a disabled row", function* () {
    const { errors, job: loaded } = yield* withRows(
      {
        "profile.yaml": "enabled: false\n",
        "person.yaml": `path: \${ROOT}/{execution_id}/customer/v1/profile\nfamilies: ["*"]\nfinal: done\n`,
      },
      { ROOT: "/executions/results" },
    )
    expect(errors).toEqual([])
    expect(loaded).toMatchObject({
      sources: [
        flowResultsSource,
        { ...profileSource, enabled: false },
        { ...incomeSource, name: "person", path: profileSource.path, families: ["*"], final: "done" },
      ],
    })
  })

  inFiles.effect("have one order, whatever order the disk lists them in", function* () {
    const names = ["work.yaml", "a.yaml", "income.yaml"]
    const real = yield* FileSystem.FileSystem
    const folder = yield* real.makeTempDirectoryScoped()
    yield* real.makeDirectory(`${folder}/own/results`, { recursive: true })
    for (const name of names) {
      const text = income.replaceAll("income", name.replace(".yaml", ""))
      yield* real.writeFileString(`${folder}/own/results/${name}`, text)
    }
    const disk = FileSystem.makeNoop({ stat: real.stat, readDirectory: () => Effect.succeed(names) })
    const around = {
      findings: makeFindings(),
      folder,
      environmentOf: () => Effect.succeed(new Map<string, string>()),
    }
    const place = { file: "job.yaml", line: 1, column: 1 }
    const sources = yield* loadResultsSources(around, "own", place).pipe(
      Effect.provideService(FileSystem.FileSystem, disk),
    )
    expect([around.findings.errors(), sources.map(({ name }) => name)]).toEqual([
      [],
      ["flow_results", "profile", "a", "income", "work"],
    ])
  })

  effect("warn if executions would be deleted without a count", function* () {
    const { errors, warnings } = yield* withRows({
      "income.yaml": `${income}counts: none\n`,
      "flow_results.yaml": "counts: none\nenabled: false\n",
    })
    expect({ errors, warnings }).toEqual({
      errors: [],
      warnings: [
        "own/results/income.yaml:4:9: what `income` returns is not compared with a count: a final answer counts as complete, and executions are deleted without that check",
      ],
    })
  })
})

describe("results sources that do not load", () => {
  effect("name each mistake at its place, all of them at once", function* () {
    const { errors } = yield* withRows({
      "Income.yaml": income,
      "flow_result.yaml": "enabled: false\n",
      "income.yaml":
        "path: /executions/{executionid}\nfamilys: [income:*]\nfamilies: ['a b']\nfinal: always\n" +
        "nothing: [500]\napi: base\ncounts: subfamily\nenabled: no\n",
      "list.yaml": "- a\n",
      "text.yaml": "path: [\n",
      "wide.yaml": "path: /all\nfamilies: []\nrecords: []\nfinal: always\nnothing: [404, 429, 401]\n",
      "work.yml": income,
    })
    const file = (name: string) => `own/results/${name}`
    expect(errors).toEqual([
      `${file("work.yml")}:1:1: a results source is a file whose name ends in .yaml: rename it`,
      `${file("Income.yaml")}:1:1: the file's name is the source's name: a-z, 0-9 and _, starting with a letter, at most 64 characters`,
      ...["path", "families", "final"].map(
        (key) =>
          `${file("flow_result.yaml")}:1:1: \`${key}\` is missing; a file that changes the built-in row is ` +
          "named `flow_results.yaml`",
      ),
      `${file("income.yaml")}:1:7: expected a path that begins with /; {execution_id} and {session_id} may ` +
        "stand for whole segments",
      `${file("income.yaml")}:2:1: unknown key \`familys\`; did you mean \`families\`?`,
      `${file("income.yaml")}:3:12: expected a \`sub_family\`, the beginning of one followed by *, or *`,
      `${file("income.yaml")}:5:11: expected a status from 400 to 499`,
      `${file("income.yaml")}:6:6: expected \`base_url\` or \`flows_url\``,
      `${file("income.yaml")}:7:9: expected \`sub_family\` or \`product\` or \`none\``,
      `${file("income.yaml")}:8:10: expected true or false`,
      `${file("list.yaml")}:1:1: expected a mapping`,
      `${file("text.yaml")}:2:1: the indentation is wrong here; the file was read no further`,
      `${file("wide.yaml")}:1:7: this path names neither {execution_id} nor {session_id}: every execution would get the same records`,
      `${file("wide.yaml")}:2:11: name at least one family; \`*\` means any`,
      `${file("wide.yaml")}:3:10: name at least one field; \`body\` is the whole body`,
      `${file("wide.yaml")}:5:10: 429 never means that an execution has no records here: remove it`,
      `${file("wide.yaml")}:5:10: 401 never means that an execution has no records here: remove it`,
    ])
  })

  effect("are two that read one path", function* () {
    const own = yield* withRows({ "a.yaml": income, "b.yaml": income })
    const builtIn = yield* withRows({ "a.yaml": income.replace(/path: .*/, `path: ${profileSource.path}`) })
    const twin = (name: string) => `:1:7: \`${name}\` already reads this path: keep one of the two`
    expect(own.errors).toEqual([`own/results/b.yaml${twin("a")}`])
    expect(builtIn.errors).toEqual([`own/results/a.yaml${twin("profile")}`])
  })

  effect("may be in a folder that does not exist, or is a file", function* () {
    const where = "job.yaml:5:10: there is no such folder beside the job file"
    expect((yield* load(job)).errors).toEqual([where])
    expect((yield* load(job, { files: { own: "" } })).errors).toEqual([where])
  })
})

it("what a plan shows about results sources is nothing about the built-in rows, and otherwise the differences", () => {
  const sources = [
    { ...flowResultsSource, enabled: false, nothing: [403, 404] },
    profileSource,
    { ...profileSource, name: "income", path: "/i/{execution_id}", families: ["income:*"], enabled: false },
  ]
  expect(differences(builtInSources)).toEqual([])
  expect(differences(sources)).toEqual([
    "flow_results: enabled false, nothing [403, 404]",
    "income (of this job): base_url/i/{execution_id} brings income:*, never asked",
  ])
})
