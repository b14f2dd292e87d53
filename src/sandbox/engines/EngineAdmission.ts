/**
 * Whether an application can run an engine at one moment (sections 4.8 and 4.9): enabled for it, compatible
 * with its environment, published and online. One rule for the list, the details and every start; an engine
 * that exists but is not admitted is unavailable, never unknown.
 */
import type { EngineDefinition } from "./EngineDefinition.ts"
import { isInMaintenance } from "./MaintenanceWindows.ts"

/** Every application of this service is a test application. */
const environment = "sandbox"

/** Why the engine cannot run now, for `detail`; undefined if it can. */
export const whyUnavailable = (engine: EngineDefinition, app_id: string, at: number): string | undefined => {
  if (engine.enabledFor?.includes(app_id) === false) return "engine not enabled for this application"
  if (engine.environment !== environment) return `engine of the ${engine.environment} environment`
  if (engine.status === "maintenance") return "engine in maintenance"
  if (engine.status !== "published") return `engine not published (${engine.status})`
  if (engine.window !== undefined && isInMaintenance(engine.window, at)) return "engine in maintenance"
  return engine.answering ? undefined : "the source is not answering"
}
