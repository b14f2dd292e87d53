/**
 * Looks at what an accepted start carries: encryption, the engine's login form, engine and feature settings
 * (sections 2.3, 4.1 and 5), and the keyed hashes by which a login is recognised without being kept.
 */
import type { StartRequest } from "../contract/Execution.ts"
import type { StatusReason } from "../contract/Vocabulary.ts"
import { checkForm, findUndecryptable } from "./CheckForm.ts"
import type { FormFinding } from "./CheckForm.ts"
import type { EngineDefinition } from "./EngineCatalogue.ts"
import { featureSettings } from "./EngineForms.ts"
import type { AskedFeature } from "./PlanResults.ts"
import { fingerprint } from "./Seeded.ts"

/**
 * What the platform finds wrong once it looks at the accepted request, and the reason that it closes with.
 */
export interface Fault {
  readonly reason: StatusReason
  readonly kind: "parameters" | "configurations"
  readonly findings: ReadonlyArray<FormFinding>
}

const featureFindings = (asked: ReadonlyArray<AskedFeature>): ReadonlyArray<FormFinding> =>
  asked.flatMap(({ code, configurations, position }) =>
    checkForm(featureSettings(code), configurations).map((finding) => ({
      ...finding,
      error: {
        ...finding.error,
        loc: [
          "features",
          ...(position === undefined ? [code] : [position]),
          "configurations",
          ...finding.error.loc,
        ],
      },
    })),
  )

/** The first kind of fault counts: encryption, then the login form, then the settings. */
export const findFault = (
  engine: EngineDefinition,
  request: StartRequest,
  asked: ReadonlyArray<AskedFeature>,
): Fault | undefined => {
  const faults: ReadonlyArray<Fault> = [
    { reason: "ENCRYPTION_ERROR", kind: "parameters", findings: findUndecryptable(request.parameters) },
    {
      reason: "INCORRECT_PARAMETERS_FORMAT",
      kind: "parameters",
      findings: checkForm(engine.parameters, request.parameters),
    },
    {
      reason: "BAD_CONFIGURATIONS",
      kind: "configurations",
      findings: [
        ...checkForm(engine.configurations, request.configurations ?? {}),
        ...featureFindings(asked),
      ],
    },
  ]
  return faults.find(({ findings }) => findings.length > 0)
}

const canonical = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(canonical)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, inner]) => [name, canonical(inner)]),
  )
}

/** Keyed by the sandbox's seed: equal logins and equal fixed parts can be told, their values cannot. */
export const loginHashes = (
  seed: number,
  engine: EngineDefinition,
  parameters: StartRequest["parameters"],
) => {
  const locking = engine.parameters["x-meta"]?.locking_fields ?? []
  const fixed =
    typeof parameters === "string" ? parameters : locking.map((field) => parameters[field] ?? null)
  return {
    login_key: fingerprint("login", seed, engine.reference, JSON.stringify(canonical(parameters))),
    locking_hash: `v1.${fingerprint("locking", seed, engine.reference, JSON.stringify(canonical(fixed)))}`,
  }
}
