/**
 * The catalogue as the service shows it: engines in list and detail view (sections 2.2 and 2.3), and what
 * counts as an engine reference.
 */
import type { Engine, EngineDetails, FormSchema } from "../../service/Engine.ts"
import type { Feature } from "../../service/Vocabulary.ts"
import { engineAlternatives } from "../../service/Vocabulary.ts"
import { engineDefinitions } from "./EngineCatalogue.ts"
import type { EngineDefinition } from "./EngineDefinition.ts"
import { featureSettings } from "./EngineForms.ts"

/** An engine reference is `<code>:<alternative>`; whether such an engine exists is another question (4.9). */
export const isEngineReference = (reference: string): boolean =>
  /^[a-z0-9][a-z0-9-]{0,63}:[a-z]{1,16}$/.test(reference)

/** The settings form that an engine shows for one of its features (2.2, detail view). */
export const featureForm = (definition: EngineDefinition, code: Feature): FormSchema =>
  definition.featureForms?.[code] ?? featureSettings(code)

const restrictionsOf = ({ keepsMonths, shields }: EngineDefinition): ReadonlyArray<string> => [
  "Datos inventados: ninguna persona real.",
  `La fuente guarda ${keepsMonths} meses.`,
  ...(shields.length === 0 ? [] : [`Con datos protegidos: ${shields.join(", ")}.`]),
]
const issuesOf = ({ status, window }: EngineDefinition): ReadonlyArray<string> => [
  ...(status === "maintenance" ? ["En mantenimiento."] : []),
  ...(window === undefined ? [] : [window.said]),
]

/** 2.2, list view. `pingedAt` is when the platform last checked the source. */
export const engineView = (definition: EngineDefinition, pingedAt: number): Engine => {
  const [code = definition.reference, alternative = "website"] = definition.reference.split(":")
  return {
    reference: definition.reference,
    engine_code: code,
    engine_alternative: engineAlternatives.find((known) => known === alternative) ?? "other",
    engine_version: "2026.11.0",
    environment: definition.environment,
    status: definition.status,
    priority: 100 - engineDefinitions.indexOf(definition),
    keywords: [code, ...definition.name.toLowerCase().split(" ")],
    color_primary: {
      lighter: "#f4f7f9",
      light: "#c7d8e0",
      main: definition.color,
      dark: "#143c4c",
      darker: "#0a1e26",
      contrast_text: "#ffffff",
      contrastText: "#ffffff",
    },
    main_category: definition.category,
    sub_categories: definition.subCategories,
    name: definition.name,
    description: definition.description,
    markets: definition.markets,
    languages: definition.languages,
    engine_restrictions: restrictionsOf(definition),
    engine_issues: issuesOf(definition),
    action_required_frequency: definition.frequency,
    live: { last_ping_date: new Date(pingedAt - (pingedAt % 300_000)).toISOString() },
    is_online: definition.answering && definition.status !== "maintenance",
    website: `https://${code}.invalid`,
    features: definition.features,
  }
}

/** 2.2, detail view. */
export const engineDetails = (definition: EngineDefinition, pingedAt: number): EngineDetails => ({
  ...engineView(definition, pingedAt),
  events: definition.events,
  parameters: definition.parameters,
  configurations: definition.configurations,
  features: definition.features.map((code) => ({ code, configurations: featureForm(definition, code) })),
})
