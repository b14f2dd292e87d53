/**
 * The catalogue of the service that acceptance writes for itself: engines of every form that sections 2.2 and 2.3
 * allow, with fields and enumeration values that the reference does not name.
 */
export interface Reply {
  readonly status: number
  readonly body?: unknown
  /** Sent as it is, instead of `body`. */
  readonly text?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Pieces of a body that is too large to be made whole, as fast as the other side takes them. */
  readonly pieces?: () => Iterable<Uint8Array>
}

const form = (
  format: "cg-params" | "cg-configs",
  properties: Readonly<Record<string, unknown>>,
  required: ReadonlyArray<string> = [],
) => ({ type: "object", format, properties, required, $defs: null, "x-meta": null, x_unknown: true })

const login = form(
  "cg-params",
  {
    username: { type: "string", minLength: 1, maxLength: 400 },
    password: { type: "string", minLength: 4, format: "password" },
  },
  ["username", "password"],
)

const common = (reference: string) => ({
  reference,
  engine_code: reference.split(":")[0],
  engine_alternative: "website",
  engine_version: "7.1.2",
  environment: "production",
  status: "published",
  priority: 10,
  keywords: [],
  color_primary: { lighter: "#fff", contrast_text: "#000", contrastText: "#000" },
  main_category: "financial",
  sub_categories: ["financial:bank", "something:else"],
  name: reference,
  description: "",
  markets: ["ES"],
  languages: ["es"],
  engine_restrictions: [],
  engine_issues: [],
  action_required_frequency: "never",
  live: { last_ping_date: null },
  is_online: true,
  website: null,
  added_in_a_later_release: { deep: [1, 2, { three: null }] },
})

const codes = ["accounts_read", "cards_read", "customer_information_read"]
const settings = (code: string) =>
  form("cg-configs", code === "accounts_read" ? { from_date: { type: "string" } } : {})

export interface FakeEngine {
  readonly list: unknown
  readonly show: Reply
}

const engine = (
  reference: string,
  fields: Readonly<Record<string, unknown>> = {},
  parameters: unknown = login,
): readonly [string, FakeEngine] => [
  reference,
  {
    list: { ...common(reference), features: codes, ...fields },
    show: {
      status: 200,
      body: {
        ...common(reference),
        events: ["started", "ended", "an_event_of_tomorrow"],
        parameters,
        configurations: form("cg-configs", { branch: { type: "string" } }),
        features: codes.map((code) => ({ code, configurations: settings(code), note: "unknown" })),
        ...fields,
      },
    },
  },
]

export const engines = new Map<string, FakeEngine>([
  engine("fake-bank:website"),
  engine("fake-tax:website", { main_category: "a_new_category", engine_alternative: "quantum" }),
  engine(
    "fake-odd:api",
    { action_required_frequency: "once_in_a_blue_moon", status: "partial" },
    form("cg-params", { nif: { type: "string", pattern: "^[0-9]{8}[A-Z]$" }, pin: { type: "integer" } }, [
      "nif",
      "pin",
    ]),
  ),
])
