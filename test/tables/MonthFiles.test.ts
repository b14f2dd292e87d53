/** Which files become one: months that are over, of small files, of rows that one text of a schema made. */
import { assert, describe, it } from "@effect/vitest"
import { monthPath, readPath } from "../../src/tables/Manifest.ts"
import type { Manifest, ManifestFile } from "../../src/tables/Manifest.ts"
import { monthFiles } from "../../src/tables/MonthFiles.ts"

const mb = 1_048_576

const file = (run: string, more: Partial<ManifestFile> = {}): ManifestFile => ({
  table: "runs",
  path: `tables/runs/run_date=${run.slice(-10)}/${run}-v1.parquet`,
  rows: 1,
  bytes: 1_000,
  sha256: "",
  ...more,
})

const aRun = (run: string, more: Partial<Manifest["runs"][string]> = {}): Manifest["runs"] => ({
  [run]: { run_date: run.slice(-10), version: 1, files: [file(run)], ...more },
})

const manifestOf = (...runs: ReadonlyArray<Manifest["runs"]>): Manifest => ({
  version: 1,
  amends: false,
  runs: Object.assign({}, ...runs) as Manifest["runs"],
})

/** The runs of each file, in a month that is over unless it is said otherwise. */
const chosen = (manifest: Manifest, overBy = "2026-11-01", runs?: ReadonlyArray<string>) =>
  monthFiles(manifest, [], {
    overBy: Date.parse(overBy),
    ...(runs === undefined ? {} : { runs: new Set(runs) }),
  }).map(({ month, parts }) => [month, ...parts.map(({ run_id }) => run_id)].join(" "))

const [early, late, next] = ["a.2026-10-01", "a.2026-10-31", "a.2026-11-01"] as const
const shared = { path: "tables/runs/run_date=2026-10-01=2026-10-31/2026-10-v2.parquet", file_rows: 2 }

describe("the files of a month", () => {
  it("become one once the whole month is over, in the order of date and run", () => {
    const manifest = manifestOf(aRun(next), aRun(late), aRun("b.2026-10-01"), aRun(early))
    assert.deepStrictEqual(chosen(manifest), [`2026-10 ${early} b.2026-10-01 ${late}`])
    assert.deepStrictEqual(chosen(manifest, "2026-10-31T23:59:59Z"), [])
    assert.deepStrictEqual(chosen(manifest, "2027-01-01", [early, late]), [`2026-10 ${early} ${late}`])
  })

  it("stay as they are if there is one, or if they are large, of a run that goes on, or of another schema", () => {
    assert.deepStrictEqual(chosen(manifestOf(aRun(early))), [])
    const large = aRun(late, { files: [file(late, { bytes: 32 * mb })] })
    assert.deepStrictEqual(chosen(manifestOf(aRun(early), large)), [])
    assert.deepStrictEqual(chosen(manifestOf(aRun(early), aRun(late, { interim: true }))), [])
  })

  it("of a run that are several become one, and a file that is full is followed by another", () => {
    const parts = [file(early), file(early, { path: "tables/runs/run_date=2026-10-01/x-v1-2.parquet" })]
    assert.deepStrictEqual(chosen(manifestOf(aRun(early, { files: parts }))), [`2026-10 ${early}`])
    const runs = ["01", "02", "03", "04", "05"].map((day) => `a.2026-10-${day}`)
    const big = runs.map((run) => aRun(run, { files: [file(run, { bytes: 31 * mb })] }))
    assert.deepStrictEqual(chosen(manifestOf(...big)), [
      `2026-10 ${runs[0]} ${runs[1]}`,
      `2026-10 ${runs[2]} ${runs[3]}`,
    ])
  })

  it("that several runs share are taken with all of these runs or not at all", () => {
    const [one, other] = [early, late].map((run) => aRun(run, { files: [file(run, shared)] }))
    const again = aRun("a.2026-10-15")
    const manifest = manifestOf(one ?? {}, other ?? {}, again)
    assert.deepStrictEqual(chosen(manifestOf(one ?? {}, other ?? {})), [])
    assert.deepStrictEqual(chosen(manifest), [`2026-10 ${early} ${late} a.2026-10-15`])
    assert.deepStrictEqual(chosen(manifest, "2026-11-01", [early, "a.2026-10-15"]), [])
  })

  it("have a path that a glob for dates finds, and that is told from a night's", () => {
    const taken = new Set<string>()
    const path = () => monthPath({ table: "runs", month: "2028-02" }, 7, taken)
    assert.deepStrictEqual(
      [path(), path()],
      [
        "tables/runs/run_date=2028-02-01=2028-02-29/2028-02-v7.parquet",
        "tables/runs/run_date=2028-02-01=2028-02-29/2028-02-v7-2.parquet",
      ],
    )
    assert.deepStrictEqual(readPath(path()), { table: "runs", version: 7, own: undefined })
    const own = { run_id: early, run_date: "2026-10-01" }
    assert.deepStrictEqual(readPath(file(early).path), { table: "runs", version: 1, own })
  })
})
