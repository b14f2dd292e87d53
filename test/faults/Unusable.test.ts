/** A few functions of the campaign that throws in each of those that handle an answer. */
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { expect, it } from "vitest"

const root = fileURLToPath(new URL("../../", import.meta.url))

it("a function that throws on one customer's answers affects only that customer's task [promise 11]", () => {
  const args = ["--import", "./test/faults/ProbeHooks.ts", "test/faults/unusable.ts", "--count", "2"]
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" })
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" })
  expect(stdout).toMatch(/^2 of [12]\d\d functions threw, at 2 moments; 0 cost more than their task; /)
}, 240_000)
