/** Pseudonyms through the program itself: a night with them, who is who, and their end. */
import { existsSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { Workplace } from "../../acceptance/Nightjar.ts"

const place = new Workplace()
afterAll(() => place.remove())
const key = { PSEUDONYM_KEY: "0123456789abcdeffedcba9876543210".repeat(2) }

const text = `name: small
service: { sandbox: { seed: 7, speed: 2000 } }
output: { share: group }
record_schemas: []
engines: [{ reference: sandbox-bank:website, features: [customer_information_read] }]
customers: [{ id: customer-001, parameters: { username: ok+queue-1+run-1, password: env:LOGIN_PASSWORD } }]
`
const names = "SELECT customer_id FROM customers"

it("are refused at the table or the column that there is not, with the nearest name", async () => {
  const columns = "  columns:\n    customer_profils: [name]\n    emails: [email, emial]\n"
  const job = place.write("wrong.yaml", `${text}pseudonyms:\n  key: env:PSEUDONYM_KEY\n${columns}`)
  const { code, stderr } = await place.nightjar("validate", job)
  const of = "`pseudonyms.columns`: "
  expect([code, stderr.split("\n").slice(0, 2)]).toEqual([
    2,
    [
      `${job}:10:5: ${of}customer_profils: no record schema has a table of this name; did you mean \`customer_profiles\`?`,
      `${job}:11:21: ${of}emails.emial: its record schema has no column of this name; did you mean \`email\`?`,
    ],
  ])
})

it("are published instead of the customers, and end when all tables are derived again without them [plan pseudonyms] [refused other key]", async () => {
  const pseudonyms = "pseudonyms: { key: env:PSEUDONYM_KEY, columns: { customer_profiles: [name] } }\n"
  const [job, masked] = [place.write("clear.yaml", text), place.write("masked.yaml", text + pseudonyms)]
  const night = await place.start(["run", masked, "--no-progress"], key).ended
  expect([night.code, night.stderr]).toEqual([0, ""])
  const [row] = await place.rows(names)
  const simple = { PSEUDONYM_KEY: "simple" }
  const other = { PSEUDONYM_KEY: "fedcba98765432100123456789abcdef".repeat(2) }
  const otherKey = "the published tables have the pseudonyms of another key"
  for (const [args, with_, why] of [
    [["run", masked], simple, "env:PSEUDONYM_KEY: the key of the pseudonyms is not 32 random bytes"],
    [["plan", job], key, "the published tables have pseudonyms, and the job asks for none"],
    [["pseudonyms", "customer-001"], other, otherKey],
    [["rebuild"], other, otherKey],
    [["repair"], other, otherKey],
    [["forget", "customer-001", "--yes", "--here-only"], other, otherKey],
  ] as const) {
    const refused = await place.start([...args], with_).ended
    expect([refused.code, refused.stdout]).toEqual([2, ""])
    expect(refused.stderr).toContain(why)
    expect(refused.stderr).toContain("[pseudonyms-refused]")
  }
  const asked = await place.start(["pseudonyms", String(row?.["customer_id"]), "--json"], key).ended
  expect(JSON.parse(asked.stdout)).toEqual([{ customer_id: "customer-001", pseudonym: row?.["customer_id"] }])
  const file = join(place.folder, "tables.html")
  await place.nightjar("tables", "--html", file)
  const page = readFileSync(file, "utf8")
  const runs = () => statSync(join(place.output, "runs")).mode & 0o777
  expect([row?.["customer_id"], runs()]).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), 0o700])
  const removal = await place.nightjar("forget", "customer-001", "--yes", "--here-only")
  expect([removal.code, removal.stderr]).toEqual([2, expect.stringContaining("env:PSEUDONYM_KEY")])
  expect(await place.json("rebuild", "--job", job)).toMatchObject({ runs: 1, left_out: [], version: 3 })
  expect(await place.rows(names)).toEqual([{ customer_id: "customer-001" }])
  expect(existsSync(join(place.output, "pseudonyms.json"))).toBe(false)
  const people = await place.rows("SELECT DISTINCT name FROM customer_profiles WHERE length(name) > 3")
  expect(people.length).toBeGreaterThan(0)
  const theirs = ["customer-001", ...people.map(({ name }) => `"${String(name)}"`)]
  expect([
    page.includes(`"${String(row?.["customer_id"])}"`),
    theirs.filter((one) => page.includes(one)),
  ]).toEqual([true, []])
}, 60_000)
