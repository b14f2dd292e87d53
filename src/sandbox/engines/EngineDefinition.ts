/**
 * What the embedded service knows about an engine (sections 2.2 and 2.3), with the defaults for engines
 * whose definition does not say otherwise.
 */
import type { FormSchema } from "../../service/Engine.ts"
import type {
  actionRequiredFrequencies,
  engineEvents,
  engineStatuses,
  environments,
  Feature,
  mainCategories,
} from "../../service/Vocabulary.ts"
import { loginForm, password, settingsForm, text } from "./EngineForms.ts"
import type { MaintenanceWindow } from "./MaintenanceWindows.ts"

export interface EngineDefinition {
  readonly reference: string
  readonly name: string
  readonly description: string
  readonly environment: (typeof environments)[number]
  readonly status: (typeof engineStatuses)[number]
  /** Whether its source answers at all. */
  readonly answering: boolean
  readonly window?: MaintenanceWindow
  /** The applications that it is enabled for; if absent, all. */
  readonly enabledFor?: ReadonlyArray<string>
  readonly category: (typeof mainCategories)[number]
  readonly subCategories: ReadonlyArray<string>
  readonly markets: ReadonlyArray<string>
  readonly languages: ReadonlyArray<string>
  readonly features: ReadonlyArray<Feature>
  /** What runs if a start names no features. */
  readonly defaults: ReadonlyArray<Feature>
  readonly events: ReadonlyArray<(typeof engineEvents)[number]>
  readonly parameters: FormSchema
  readonly configurations: FormSchema
  /** Forms of features that require more, or less, than the reference's own settings. */
  readonly featureForms?: Readonly<Partial<Record<Feature, FormSchema>>>
  /** How far back its source goes: earlier dates exceed the limits of 4.1. */
  readonly keepsMonths: number
  /** Features whose protected fields only `unlock_protected_data` shows. */
  readonly shields: ReadonlyArray<Feature>
  /** Whether its logins can be stored behind a token. */
  readonly tokenizes: boolean
  /** The form field whose text is read for behaviour words. */
  readonly wordsField: string
  readonly frequency: (typeof actionRequiredFrequencies)[number]
  readonly color: string
}

export const userAndPassword = loginForm(
  { username: text("Usuario", { minLength: 1, maxLength: 256 }), password: password("Contraseña") },
  { locking: ["username"] },
)

export const defineEngine = (
  reference: string,
  definition: Partial<EngineDefinition> &
    Pick<EngineDefinition, "name" | "category" | "subCategories" | "features">,
): EngineDefinition => ({
  reference,
  description: `${definition.name}, simulada por el servicio embebido.`,
  environment: "sandbox",
  status: "published",
  answering: true,
  markets: ["ES"],
  languages: ["es"],
  defaults: definition.features,
  events: ["started", "action_required", "ended", "auth_ended"],
  parameters: userAndPassword,
  configurations: settingsForm(),
  keepsMonths: 120,
  shields: [],
  tokenizes: true,
  wordsField: "username",
  frequency: "rarely",
  color: "#1f6f8b",
  ...definition,
})

export const bankFeatures = ["accounts_read", "cards_read", "customer_information_read"] as const
