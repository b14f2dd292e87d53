/**
 * The engines for testing: the four that the product's contract names, and one for every reason why an
 * existing engine cannot run (sections 2.2, 4.8 and 4.9).
 */
import { bankFeatures, defineEngine } from "./EngineDefinition.ts"
import { settingsForm, text } from "./EngineForms.ts"
import { lastTenMinutesOfEveryHour } from "./MaintenanceWindows.ts"

export const promisedEngines = [
  defineEngine("sandbox-bank:website", {
    name: "Banco Sandbox",
    category: "financial",
    subCategories: ["financial:bank"],
    markets: ["ES", "CO"],
    features: bankFeatures,
  }),
  defineEngine("sandbox-tax:website", {
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
  defineEngine("sandbox-always:website", {
    name: "Banco Siempre Presente",
    category: "financial",
    subCategories: ["financial:bank"],
    features: bankFeatures,
    frequency: "always",
  }),
  defineEngine("sandbox-maintenance:website", {
    name: "Banco en Obras",
    category: "financial",
    subCategories: ["financial:bank"],
    features: bankFeatures,
    status: "maintenance",
  }),
]

/** The application behind `sandbox-app-1`. */
const firstApplication = "65f0c0ffee00000000000001"

const bank = (reference: string, name: string, more: Partial<Parameters<typeof defineEngine>[1]>) =>
  defineEngine(reference, {
    name,
    category: "financial",
    subCategories: ["financial:bank"],
    features: bankFeatures,
    ...more,
  })

/** Each exists, but cannot be run by everybody at any time. */
export const reservedEngines = [
  bank("sandbox-draft:website", "Banco en Papel", { status: "draft" }),
  bank("sandbox-implementing:api", "Banco por Hacer", { status: "implementing" }),
  bank("sandbox-partial:mobile", "Banco a Medias", { status: "partial" }),
  bank("sandbox-production:website", "Banco de Verdad", { environment: "production" }),
  bank("sandbox-offline:other", "Banco Callado", { answering: false }),
  bank("sandbox-private:website", "Banco Privado", { enabledFor: [firstApplication] }),
  bank("sandbox-window:website", "Banco con Horario", { window: lastTenMinutesOfEveryHour }),
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
