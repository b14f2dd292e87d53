/**
 * The engines of the embedded service: the four that are always there by contract, and sources of every main category
 * whose forms and features differ as those of a real catalogue do. Between them they offer every feature of 2.1.
 */
import type { Engine, EngineDetails, FormSchema } from "../contract/Engine.ts"
import { actionRequiredFrequencies, engineAlternatives, mainCategories } from "../contract/Vocabulary.ts"
import type { Feature } from "../contract/Vocabulary.ts"
import { featureSettings, loginForm, nif, password, settingsForm, text } from "./EngineForms.ts"

export interface EngineDefinition {
  readonly reference: string
  readonly name: string
  readonly description: string
  readonly category: (typeof mainCategories)[number]
  readonly subCategories: ReadonlyArray<string>
  readonly markets: ReadonlyArray<string>
  readonly features: ReadonlyArray<Feature>
  /** What runs when a start names no features. */
  readonly defaults: ReadonlyArray<Feature>
  readonly parameters: FormSchema
  readonly configurations: FormSchema
  /** The form field whose text is read for behaviour words. */
  readonly wordsField: string
  readonly frequency: (typeof actionRequiredFrequencies)[number]
  readonly maintenance: boolean
  readonly color: string
}

const userAndPassword = loginForm(
  { username: text("Usuario", { minLength: 1, maxLength: 256 }), password: password("Contraseña") },
  { locking: ["username"] },
)

const define = (
  reference: string,
  definition: Partial<EngineDefinition> &
    Pick<EngineDefinition, "name" | "category" | "subCategories" | "features">,
): EngineDefinition => ({
  reference,
  description: `${definition.name}, simulada por el servicio embebido.`,
  markets: ["ES"],
  defaults: definition.features,
  parameters: userAndPassword,
  configurations: settingsForm(),
  wordsField: "username",
  frequency: "rarely",
  maintenance: false,
  color: "#1f6f8b",
  ...definition,
})

const bankFeatures = ["accounts_read", "cards_read", "customer_information_read"] as const
const wordsNote = (field: string) => `Sandbox: behaviour words are read from ${field}.`
const alias = text("Alias de la conexión", { maxLength: 256 })

const always = [
  define("sandbox-bank:website", {
    name: "Banco Sandbox",
    category: "financial",
    subCategories: ["financial:bank"],
    markets: ["ES", "CO"],
    features: bankFeatures,
  }),
  define("sandbox-tax:website", {
    name: "Agencia Sandbox",
    category: "public",
    subCategories: ["public:tax"],
    features: [
      "customer_information_read",
      "yearly_individual_tax",
      "academic_data",
      "labor_check",
      "properties_data",
      "vehicles_data",
      "driver_data",
      "public_pensions",
      "public_document_verification",
    ],
    defaults: ["customer_information_read", "yearly_individual_tax"],
    color: "#8b1f3d",
  }),
  define("sandbox-always:website", {
    name: "Banco Siempre Presente",
    category: "financial",
    subCategories: ["financial:bank"],
    features: bankFeatures,
    frequency: "always",
  }),
  define("sandbox-maintenance:website", {
    name: "Banco en Obras",
    category: "financial",
    subCategories: ["financial:bank"],
    features: bankFeatures,
    maintenance: true,
  }),
]

const publicSources = [
  define("es-tax-agency:website", {
    name: "Agencia Tributaria",
    category: "public",
    subCategories: ["public:tax"],
    features: ["customer_information_read", "yearly_individual_tax", "properties_data"],
    defaults: ["customer_information_read", "yearly_individual_tax"],
    configurations: settingsForm({ delegation: text("Delegación", { enum: ["madrid", "barcelona", "other"] }) }),
    color: "#0b5394",
  }),
  define("es-social-security:website", {
    name: "Seguridad Social",
    category: "public",
    subCategories: ["public:social_security"],
    features: ["labor_check", "public_pensions", "customer_information_read"],
    defaults: ["labor_check", "customer_information_read"],
    parameters: loginForm(
      { nif: nif(), pin: password("PIN", { maxLength: 16 }), alias },
      { required: ["nif", "pin"], locking: ["nif"], lazy: ["alias"], instructions: wordsNote("alias") },
    ),
    wordsField: "alias",
  }),
  define("es-university:website", {
    name: "Universidad de Ejemplo",
    category: "public",
    subCategories: ["public:education"],
    features: ["academic_data", "customer_information_read"],
    parameters: loginForm(
      {
        campus_user: text("Usuario del campus", { minLength: 1, maxLength: 256 }),
        campus_password: password("Contraseña"),
        campus: text("Campus", { enum: ["norte", "sur", "online"], default: "norte" }),
      },
      {
        required: ["campus_user", "campus_password"],
        locking: ["campus_user", "campus"],
        instructions: wordsNote("campus_user"),
      },
    ),
    wordsField: "campus_user",
    frequency: "never",
  }),
  define("es-traffic:website", {
    name: "Dirección de Tráfico",
    category: "public",
    subCategories: ["public:traffic"],
    features: ["vehicles_data", "driver_data"],
    parameters: loginForm(
      {
        nif: nif(),
        support_number: text("Número de soporte", { pattern: "^[A-Z]{3}[0-9]{6}$" }),
        contact_date: text("Fecha de validez", { format: "date" }),
        alias,
      },
      {
        required: ["nif", "support_number"],
        locking: ["nif"],
        hidden: ["alias"],
        lazy: ["contact_date"],
        instructions: wordsNote("alias"),
      },
    ),
    wordsField: "alias",
  }),
]

const otherSources = [
  define("es-bank:api", {
    name: "Banco Ejemplo",
    category: "financial",
    subCategories: ["financial:bank", "financial:investment"],
    features: [
      "accounts_read",
      "cards_read",
      "customer_information_read",
      "deposits_read",
      "loans_read",
      "credits_read",
      "investment_accounts_read",
      "funds_read",
      "stocks_read",
      "pensions_read",
      "accounts_certificates",
      "direct_debits_read",
      "source_contracts_read",
      "credit_registry_data",
    ],
    defaults: ["accounts_read", "cards_read", "customer_information_read"],
    parameters: loginForm(
      {
        document_type: { $ref: "#/$defs/document_type" },
        username: text("Usuario o documento", { minLength: 1, maxLength: 256 }),
        password: { $ref: "#/$defs/secret" },
        signature: { $ref: "#/$defs/secret", nullable: true },
      },
      {
        required: ["username", "password"],
        defs: {
          document_type: { type: "string", enum: ["dni", "nie", "passport", "cif"], default: "dni" },
          secret: { type: "string", format: "password", minLength: 4, maxLength: 64 },
        },
        locking: ["username", "document_type"],
        lazy: ["signature"],
      },
    ),
    frequency: "on_first_use",
  }),
  define("cloud-hosting:api", {
    name: "Alojamiento en la Nube",
    category: "cloud",
    subCategories: ["cloud:hosting"],
    markets: ["ES", "PT", "CO"],
    features: ["cloud_resource_read", "supplier_invoices_read"],
    parameters: loginForm(
      {
        tenant: text("Cuenta", { minLength: 1, maxLength: 256 }),
        api_key: password("Clave de API", { minLength: 8 }),
        region: text("Región", { enum: ["eu-south", "eu-west", "sa-east"] }),
      },
      { required: ["tenant", "api_key"], locking: ["tenant"], instructions: wordsNote("tenant") },
    ),
    configurations: settingsForm({ project: text("Proyecto", { pattern: "^[a-z0-9-]{1,40}$" }) }),
    wordsField: "tenant",
    frequency: "never",
  }),
  define("es-utility:mobile", {
    name: "Energía Ejemplo",
    category: "commercial",
    subCategories: ["commercial:utility"],
    features: [
      "supplier_invoices_read",
      "client_invoices_read",
      "source_contracts_read",
      "customer_information_read",
    ],
    defaults: ["supplier_invoices_read", "source_contracts_read", "customer_information_read"],
    frequency: "often",
  }),
  define("es-notary:other", {
    name: "Colegio Notarial",
    category: "other",
    subCategories: ["other:registry"],
    features: ["properties_data", "public_document_verification"],
    frequency: "unknown",
  }),
]

export const engineDefinitions: ReadonlyArray<EngineDefinition> = [...always, ...publicSources, ...otherSources]

const byReference = new Map(engineDefinitions.map((definition) => [definition.reference, definition]))
export const findEngine = (reference: string): EngineDefinition | undefined => byReference.get(reference)

/** An engine reference is `<code>:<alternative>`; whether such an engine exists is another question (4.9). */
export const isEngineReference = (reference: string): boolean =>
  /^[a-z0-9][a-z0-9-]{0,63}:[a-z]{1,16}$/.test(reference)

/** 2.2, list view. `pingedAt` is when the platform last looked at the source. */
export const engineView = (definition: EngineDefinition, pingedAt: number): Engine => {
  const [code = definition.reference, alternative = "website"] = definition.reference.split(":")
  return {
    reference: definition.reference,
    engine_code: code,
    engine_alternative: engineAlternatives.find((known) => known === alternative) ?? "other",
    engine_version: "2026.11.0",
    environment: "sandbox",
    status: definition.maintenance ? "maintenance" : "published",
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
    languages: ["es"],
    engine_restrictions: ["Datos inventados: ninguna persona real."],
    engine_issues: definition.maintenance ? ["En mantenimiento."] : [],
    action_required_frequency: definition.frequency,
    live: { last_ping_date: new Date(pingedAt - (pingedAt % 300_000)).toISOString() },
    is_online: !definition.maintenance,
    website: `https://${code}.invalid`,
    features: definition.features,
  }
}

/** 2.2, detail view. */
export const engineDetails = (definition: EngineDefinition, pingedAt: number): EngineDetails => ({
  ...engineView(definition, pingedAt),
  events: ["started", "action_required", "ended", "auth_ended"],
  parameters: definition.parameters,
  configurations: definition.configurations,
  features: definition.features.map((code) => ({ code, configurations: featureSettings(code) })),
})
