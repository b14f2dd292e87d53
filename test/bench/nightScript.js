/**
 * What `npm run bench -- night` is measured beside: the same customers as a script reads them that takes no care. No
 * ledger, no retries, no pace, no tables: it starts, looks every five seconds, adds each body to one file, deletes.
 */
import { createWriteStream, readFileSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"

const [customers, output, atOnce] = process.argv.slice(2)
const { NIGHTJAR_BASE_URL: base, NIGHTJAR_FLOWS_URL: flows, NIGHTJAR_APP_SECRET: secret } = process.env
const headers = { "X-APP-SECRET": secret, "content-type": "application/json" }
const file = createWriteStream(output)

const call = async (url, asked = {}) => {
  const answer = await fetch(url, { ...asked, headers })
  const text = await answer.text()
  file.write(`${text}\n`)
  return { status: answer.status, json: text === "" ? {} : JSON.parse(text) }
}

const execute = async (line) => {
  const [customer_id, engine_reference, username, password] = line.split(",")
  const asked = { customer_id, engine_reference, parameters: { username, password } }
  const order = { ...asked, base_configurations: { customer_interaction_available: false } }
  const body = JSON.stringify(order)
  const start = await call(`${base}/executions/init/v1/parametrized`, { method: "POST", body })
  const execution = `${base}/executions/handler/v1/${start.json.execution_id}`
  let state = start
  while (state.status === 202) {
    await sleep(5_000)
    state = await call(execution)
  }
  const results = `${flows}/es-public-administration/v1/manager/${state.json.session_id}/results`
  while (state.json.status_code === "COMPLETED" && !(await call(results)).json.is_closed) await sleep(5_000)
  await call(`${execution}/delete`, { method: "DELETE" })
}

const [, ...lines] = readFileSync(customers, "utf8").trimEnd().split("\n")
const work = async () => {
  for (let line = lines.shift(); line !== undefined; line = lines.shift()) await execute(line)
}
await Promise.all(Array.from({ length: Number(atOnce) }, work))
