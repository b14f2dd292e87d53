/**
 * An engine form made to show a login, against a service on the loopback interface. What forms that burn time do is in
 * `test/client/FormProcess.test.ts` and `test/hostile`.
 */
import { existsSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { engineDetails } from "../client/Examples.ts"
import { sharedFolder } from "../harness/Folder.ts"
import { startHere } from "../harness/ProgramHere.ts"

const root = sharedFolder()
/** Of somebody who logged in here, as choices of the form. */
const showing = {
  branch: { type: "string", enum: ["north-7", "kept-in-env-7", "kept-in-file-7", "written-7"] },
}

const service = createServer((request, response) => {
  const [, reference] = /\/config\/engines\/(\w+:\w+)$/.exec(decodeURIComponent(request.url ?? "")) ?? []
  const parameters = { type: "object", format: "cg-params", properties: showing }
  response.setHeader("content-type", "application/json")
  response.end(JSON.stringify(reference === undefined ? [] : { ...engineDetails, reference, parameters }))
})
let origin = ""
beforeAll(async () => {
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve))
  origin = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
})
afterAll(() => void service.close())

it("[promise 12 engine forms] `engines show` blanks every login of its job but those that only a command knows", async () => {
  writeFileSync(join(root, "pin.txt"), "kept-in-file-7\n", { mode: 0o600 })
  writeFileSync(
    join(root, "shows.yaml"),
    `name: shows
service: { base_url: "${origin}/api", flows_url: "${origin}/flows", app_secret: env:APP }
engines: ["shows:logins"]
customers:
  - id: k-1
    parameters: { branch: north-7, user: env:USER_NAME, pin: file:pin.txt, password: written-7, code: env:NOT_SET,
      key: "exec:touch ${root}/was-run" }
`,
  )
  const { ended } = startHere(["engines", "show", "shows:logins", "--job", "shows.yaml"], {
    folder: root,
    environment: { APP: "app-secret", USER_NAME: "kept-in-env-7" },
  })
  const { code, stdout, stderr } = await ended
  expect([code, /branch .*$/m.exec(stdout)?.[0], existsSync(join(root, "was-run"))]).toEqual([
    0,
    expect.stringMatching(/^branch +string +north-7\|\[blanked\]\|\[blanked\]\|\[blanked\]$/),
    false,
  ])
  expect(stdout + stderr).not.toMatch(/kept-in|written-7/)
})
