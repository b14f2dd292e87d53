/** A start and an engine as the reference shows them, for tests that need one and do not care which. */
import { Redacted } from "effect"
import type { StartCall } from "../../src/client/Service.ts"
import { anId } from "../harness/Id.ts"

export const startCall = (over: Partial<StartCall> = {}): StartCall => ({
  engine_reference: anId("sandbox-bank:website"),
  customer_id: anId("c-0001"),
  login: { _tag: "Parameters", parameters: Redacted.make({ username: "ok", password: "password-canary-2" }) },
  external_execution_id: "run/c-0001/sandbox-bank:website#1",
  base_configurations: {
    customer_interaction_available: false,
    execution_timeout: 1200,
    unlock_protected_data: false,
    tokenized_access: false,
  },
  features: ["accounts_read"],
  hooks_extra_data: {},
  configurations: {},
  ...over,
})

const form = (format: string) => ({ type: "object" as const, format, properties: {} })

/** The least that an engine's details must hold (2.2, 2.3). */
export const engineDetails = {
  reference: "sandbox-bank:website",
  status: "published",
  action_required_frequency: "never",
  is_online: true,
  parameters: form("cg-params"),
  configurations: form("cg-configs"),
  features: [{ code: "accounts_read", configurations: form("cg-configs") }],
}
