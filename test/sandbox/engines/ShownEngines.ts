/**
 * Three engines that differ in every field of the list view, written down in full as the service shows them, so
 * that a value which is of the right type and wrong all the same is noticed.
 */
const colours = {
  lighter: "#f4f7f9",
  light: "#c7d8e0",
  main: "#1f6f8b",
  dark: "#143c4c",
  darker: "#0a1e26",
  contrast_text: "#ffffff",
  contrastText: "#ffffff",
}

const invented = "Datos inventados: ninguna persona real."

const engine = (reference: string, name: string, more: Readonly<Record<string, unknown>>) => {
  const [engine_code = "", engine_alternative] = reference.split(":")
  return {
    reference,
    engine_code,
    engine_alternative,
    engine_version: "2026.11.0",
    environment: "sandbox",
    status: "published",
    keywords: [engine_code, ...name.toLowerCase().split(" ")],
    color_primary: colours,
    name,
    description: `${name}, simulada por el servicio embebido.`,
    markets: ["ES"],
    languages: ["es"],
    engine_restrictions: [invented, "La fuente guarda 120 meses."],
    engine_issues: [],
    live: { last_ping_date: "2026-11-21T09:00:00.000Z" },
    is_online: true,
    website: `https://${engine_code}.invalid`,
    ...more,
  }
}

/** At nine in the morning of 21 November 2026. */
export const shownEngines: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "es-bank:api": engine("es-bank:api", "Banco Ejemplo", {
    priority: 92,
    main_category: "financial",
    sub_categories: ["financial:bank", "financial:investment"],
    engine_restrictions: [
      invented,
      "La fuente guarda 24 meses.",
      "Con datos protegidos: accounts_read, cards_read.",
    ],
    action_required_frequency: "on_first_use",
    features: [
      "accounts_read cards_read customer_information_read deposits_read loans_read credits_read",
      "investment_accounts_read funds_read stocks_read pensions_read accounts_certificates",
      "direct_debits_read source_contracts_read credit_registry_data",
    ].flatMap((codes) => codes.split(" ")),
  }),
  "es-university:website": engine("es-university:website", "Universidad de Ejemplo", {
    priority: 94,
    main_category: "public",
    sub_categories: ["public:education"],
    languages: ["es", "ca"],
    action_required_frequency: "never",
    features: ["academic_data", "customer_information_read"],
  }),
  "sandbox-window:website": engine("sandbox-window:website", "Banco con Horario", {
    priority: 82,
    main_category: "financial",
    sub_categories: ["financial:bank"],
    engine_issues: ["En mantenimiento del minuto 50 al 60 de cada hora (UTC)."],
    action_required_frequency: "rarely",
    features: ["accounts_read", "cards_read", "customer_information_read"],
  }),
}

/** The login form of `es-bank:api`, which has everything that a form may have but hidden fields. */
export const bankForm = {
  type: "object",
  format: "cg-params",
  properties: {
    document_type: { $ref: "#/$defs/document_type" },
    username: { type: "string", title: "Usuario o documento", minLength: 1, maxLength: 256 },
    password: { $ref: "#/$defs/secret" },
    signature: {
      type: "string",
      title: "Firma",
      format: "password",
      minLength: 4,
      maxLength: 128,
      nullable: true,
    },
  },
  required: ["username", "password"],
  $defs: {
    document_type: { type: "string", enum: ["dni", "nie", "passport", "cif"], default: "dni" },
    secret: { type: "string", format: "password", minLength: 4, maxLength: 64 },
  },
  "x-meta": {
    instructions_title: "Acceso",
    instructions_text: "Introduzca sus datos de acceso.",
    submit_button_text: "Continuar",
    locking_fields: ["username", "document_type"],
    lazy_fields: ["signature"],
  },
}

/** What the detail view of `cloud-hosting:api` adds to the list view. */
export const cloudDetails = {
  events: ["started", "ended", "auth_ended"],
  parameters: {
    type: "object",
    format: "cg-params",
    properties: {
      tenant: { type: "string", title: "Cuenta", minLength: 1, maxLength: 256 },
      api_key: { type: "string", title: "Clave de API", format: "password", minLength: 8, maxLength: 128 },
      region: { type: "string", title: "Región", enum: ["eu-south", "eu-west", "sa-east"] },
    },
    required: ["tenant", "api_key"],
    "x-meta": {
      instructions_title: "Acceso",
      instructions_text: "Sandbox: behaviour words are read from tenant.",
      submit_button_text: "Continuar",
      locking_fields: ["tenant"],
    },
  },
  configurations: {
    type: "object",
    format: "cg-configs",
    properties: { project: { type: "string", title: "Proyecto", pattern: "^[a-z0-9-]{1,40}$" } },
  },
  features: [
    { code: "cloud_resource_read", configurations: { type: "object", format: "cg-configs", properties: {} } },
    {
      code: "supplier_invoices_read",
      configurations: {
        type: "object",
        format: "cg-configs",
        properties: {
          from_date: { type: "string", title: "Desde", default: "30 days ago" },
          to_date: { type: "string", title: "Hasta", default: "today" },
          limits_behaviour: {
            type: "string",
            title: "Fuera de límites",
            enum: ["error", "adapt"],
            default: "error",
          },
        },
      },
    },
  ],
}
