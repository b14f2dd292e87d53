/**
 * The engines of the embedded service: the four that the contract promises, and sources of every main
 * category whose forms and features differ as in a real catalogue. Between them they offer every feature of
 * 2.1.
 */
import { bankFeatures, defineEngine as define, loginForm, nif, password } from "./EngineDefinition.ts"
import { settingsForm, text } from "./EngineDefinition.ts"
import type { EngineDefinition } from "./EngineDefinition.ts"
import { firstApplication } from "../state/SandboxState.ts"

const bank = (reference: string, name: string, more: More) =>
  define(reference, {
    name,
    category: "financial",
    subCategories: ["financial:bank"],
    features: bankFeatures,
    ...more,
  })

type More = Partial<Parameters<typeof define>[1]>
const publicSource = (
  reference: string,
  name: string,
  kind: string,
  features: EngineDefinition["features"],
  more: More,
) => define(reference, { name, category: "public", subCategories: [`public:${kind}`], features, ...more })

const wordsNote = (field: string) => `Sandbox: behaviour words are read from ${field}.`
const alias = text("Alias de la conexión", { maxLength: 256 })

export const engineDefinitions: ReadonlyArray<EngineDefinition> = [
  // The four of the product's contract.
  bank("sandbox-bank:website", "Banco Sandbox", { markets: ["ES", "CO"] }),
  publicSource(
    "sandbox-tax:website",
    "Agencia Sandbox",
    "tax",
    [
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
    { defaults: ["customer_information_read", "yearly_individual_tax"], color: "#8b1f3d" },
  ),
  bank("sandbox-always:website", "Banco Siempre Presente", { frequency: "always" }),
  bank("sandbox-maintenance:website", "Banco en Obras", { status: "maintenance" }),
  // Public administrations.
  publicSource(
    "es-tax-agency:website",
    "Agencia Tributaria",
    "tax",
    ["customer_information_read", "yearly_individual_tax", "properties_data"],
    {
      defaults: ["customer_information_read", "yearly_individual_tax"],
      configurations: settingsForm({
        delegation: text("Delegación", { enum: ["madrid", "barcelona", "other"] }),
      }),
      featureForms: {
        yearly_individual_tax: settingsForm({
          last_n_years: { type: "integer", title: "Últimos ejercicios", default: 3, minimum: 1, maximum: 5 },
          filing: text("Modalidad", { enum: ["individual", "joint", "any"], default: "any" }),
        }),
      },
      color: "#0b5394",
    },
  ),
  publicSource(
    "es-social-security:website",
    "Seguridad Social",
    "social_security",
    ["labor_check", "public_pensions", "customer_information_read"],
    {
      defaults: ["labor_check", "customer_information_read"],
      parameters: loginForm(
        { nif, pin: password("PIN", { maxLength: 16 }), alias },
        { required: ["nif", "pin"], locking: ["nif"], lazy: ["alias"], instructions: wordsNote("alias") },
      ),
      wordsField: "alias",
    },
  ),
  publicSource(
    "es-university:website",
    "Universidad de Ejemplo",
    "education",
    ["academic_data", "customer_information_read"],
    {
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
      events: ["started", "ended"],
      languages: ["es", "ca"],
    },
  ),
  publicSource("es-traffic:website", "Dirección de Tráfico", "traffic", ["vehicles_data", "driver_data"], {
    description: "Dirección de Tráfico, simulada por el servicio embebido; sin tokenización.",
    parameters: loginForm(
      {
        nif,
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
    events: ["action_required", "ended", "auth_ended"],
    tokenizes: false,
  }),
  // The other main categories.
  define("es-bank:api", {
    name: "Banco Ejemplo",
    category: "financial",
    subCategories: ["financial:bank", "financial:investment"],
    features: [
      ...bankFeatures,
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
    defaults: bankFeatures,
    parameters: loginForm(
      {
        document_type: { $ref: "#/$defs/document_type" },
        username: text("Usuario o documento", { minLength: 1, maxLength: 256 }),
        password: { $ref: "#/$defs/secret" },
        signature: password("Firma", { nullable: true }),
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
    keepsMonths: 24,
    shields: ["accounts_read", "cards_read"],
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
    events: ["started", "ended", "auth_ended"],
    keepsMonths: 12,
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
    events: ["ended"],
  }),
  // One for every reason why an engine that exists cannot run (4.8, 4.9).
  bank("sandbox-draft:website", "Banco en Papel", { status: "draft" }),
  bank("sandbox-implementing:api", "Banco por Hacer", { status: "implementing" }),
  bank("sandbox-partial:mobile", "Banco a Medias", { status: "partial" }),
  bank("sandbox-production:website", "Banco de Verdad", { environment: "production" }),
  bank("sandbox-offline:other", "Banco Callado", { answering: false }),
  bank("sandbox-private:website", "Banco Privado", { enabledFor: [firstApplication.app_id] }),
  bank("sandbox-window:website", "Banco con Horario", { window: true }),
  // Needs a setting of its own: the only engine that does (4.1, `configurations`).
  bank("sandbox-settings:website", "Banco por Sucursales", {
    configurations: settingsForm(
      {
        branch: text("Sucursal", { pattern: "^[0-9]{4}$" }),
        segment: text("Segmento", { enum: ["retail", "business"], default: "retail" }),
      },
      ["branch"],
    ),
  }),
]

const byReference = new Map(engineDefinitions.map((definition) => [definition.reference, definition]))
export const findEngine = (reference: string): EngineDefinition | undefined => byReference.get(reference)

/** 2.2: an engine declares the events that it raises; one that is not in the catalogue raises them all. */
export const raisesEvent = (reference: string, event: EngineDefinition["events"][number]): boolean =>
  findEngine(reference)?.events.includes(event) ?? true
