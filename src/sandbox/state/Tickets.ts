/**
 * A ticket when it is issued (sections 2.6 and 4.1): shown once in the start's answer and afterwards known
 * only by its verifier. The login that it will be exchanged for waits encrypted under it, so that a reader
 * of the events has neither.
 */
import type { StartRequest } from "../../service/Execution.ts"
import { sealText, ticketFor, verifierOf } from "./Sealing.ts"
import type { Seal } from "./Sealing.ts"
import type { TicketIssued } from "./TokenEvent.ts"

export const ticketSeal = (ticket: string, execution_id: string): Seal => ({
  secret: ticket,
  purpose: "ticket",
  context: execution_id,
})

export const issueTicket = (
  seed: number,
  at: number,
  execution_id: string,
  parameters: StartRequest["parameters"],
  unreadable: boolean,
): { readonly ticket: string; readonly issued: TicketIssued } => {
  const login = JSON.stringify(parameters)
  const ticket = ticketFor(seed, execution_id, login)
  const issued: TicketIssued = {
    _tag: "TicketIssued",
    at,
    execution_id,
    verifier: verifierOf("ticket", ticket, execution_id),
    sealed_login: sealText(ticketSeal(ticket, execution_id), login),
    unreadable,
  }
  return { ticket, issued }
}
