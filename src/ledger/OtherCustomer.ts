/**
 * The few words with which a message about one customer names another one: whose login or token it was. They
 * stand here so that the name can be taken out again when that other customer is removed.
 */

const removed = "a removed customer"

/** Who used the same login before; undefined if that customer was removed. */
export const thenUnder = (customer_id: string | undefined): string =>
  customer_id === undefined ? ` (then under ${removed})` : ` (then under customer ${customer_id})`

/** Whose token has the name that a task gives. */
export const belongsTo = (customer_id: string): string => `belongs to ${customer_id} on `

/** The message without this customer's id. */
export const withoutName = (message: string, customer_id: string): string =>
  message
    .replaceAll(thenUnder(customer_id), thenUnder(undefined))
    .replaceAll(belongsTo(customer_id), belongsTo(removed))
