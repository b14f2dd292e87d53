/**
 * What the OpenAPI document says of each operation of the contract beyond its answers: what it is for and
 * the section of the reference that tells it, or how little that one shows.
 */
export interface AboutOperation {
  readonly summary: string
  readonly section: string
  readonly description?: string
}

const unseen = "The reference names it and shows neither its request nor its answers."

export const operations: Readonly<Record<string, AboutOperation>> = {
  startExecution: { summary: "Start an execution", section: "4.1" },
  startTokenized: { summary: "Start an execution with a token", section: "4.12", description: unseen },
  readExecution: { summary: "Read the state of an execution", section: "4.2" },
  pollExecution: {
    summary: "Poll an execution by status code only",
    section: "4.12",
    description: `${unseen} The embedded service answers the status of a read.`,
  },
  resumeExecution: {
    summary: "Answer a challenge and resume",
    section: "4.3",
    description:
      "The body is keyed by the property names of the published `form_schema`, or one encrypted string.",
  },
  abortExecution: { summary: "Stop an execution", section: "4.4" },
  deleteExecution: {
    summary: "Delete an execution",
    section: "4.5",
    description: "Removes the execution, its state, its records and its attachments, irreversibly.",
  },
  readProfile: {
    summary: "Read the profile that an execution retrieved",
    section: "4.12",
    description: unseen,
  },
  exchangeTicket: { summary: "Exchange a ticket for a token", section: "4.6" },
  readToken: { summary: "Read the status of a token", section: "4.12", description: unseen },
  revokeToken: { summary: "Revoke a token", section: "4.7" },
  listEngines: { summary: "List the engines that can run", section: "4.8" },
  showEngine: { summary: "Show an engine and its forms", section: "4.9" },
  readFlowResults: { summary: "Read the results of a flow session", section: "4.10" },
  downloadAttachment: {
    summary: "Download an attachment that the results refer to",
    section: "4.12",
    description: unseen,
  },
  listFlowHooks: {
    summary: "List flow webhooks",
    section: "4.11",
    description: "Deprecated by the reference, which does not show its path.",
  },
  createFlowHooks: { summary: "Create flow webhooks", section: "4.11", description: unseen },
  updateFlowHooks: { summary: "Update flow webhooks", section: "4.11", description: unseen },
  deleteFlowHooks: { summary: "Delete flow webhooks", section: "4.11", description: unseen },
}

export const tags = [
  { name: "executions", description: "Executions: start, follow, answer, stop, delete (4.1 to 4.5, 4.12)" },
  { name: "tokens", description: "Tickets and tokens (2.6, 4.6, 4.7, 4.12)" },
  { name: "engines", description: "The catalogue of engines (2.2, 2.3, 4.8, 4.9)" },
  { name: "flows", description: "Results of flow sessions (2.7, 4.10, 4.12)" },
  { name: "hooks", description: "Subscriptions of flow webhooks (2.8, 4.11)" },
  { name: "events", description: "What the service sends to its subscribers (6)" },
]
