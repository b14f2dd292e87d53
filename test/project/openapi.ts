/**
 * The remote service as an OpenAPI document, derived from the contract: what the embedded service answers is
 * what the document says.
 */
import { OpenApi } from "effect/http-api"
import { ServiceApi } from "../../src/contract/Api.ts"

export const serviceOpenApi = () => OpenApi.fromApi(ServiceApi)
