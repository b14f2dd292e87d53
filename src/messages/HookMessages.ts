/**
 * Errors of `nightjar hooks` (exit code 2): what another program of the same application relies on is never
 * changed by accident.
 */
import { refusal } from "./Message.ts"

const nothingChanged = "No subscription was changed."

export const hookMessages = {
  "hooks-embedded": refusal(
    "the job {path} uses the embedded service, which keeps no subscriptions between runs",
    "Give `nightjar run` the flag --webhooks: the embedded service then sends its events there.",
    "Nothing was sent.",
  ),
  "hooks-address-invalid": refusal(
    "the address is not http or https, or has a user, a query or a fragment",
    "Give an address such as https://nightjar.example:8080/; the service removes any query.",
    "Nothing was sent.",
  ),
  "hooks-event-unknown": refusal(
    "there is no such event{suggestion}",
    "`nightjar hooks subscribe --help` lists the events.",
    "Nothing was sent.",
  ),
  "hooks-taken": refusal(
    "another address receives these events already: {events}",
    "Give --replace to send them to the new address instead, or name other events with --event.",
    nothingChanged,
  ),
  "hooks-unknown": refusal(
    "no subscription sends events to that address",
    "`nightjar hooks list` shows all of them.",
    nothingChanged,
  ),
  "hooks-refused": refusal(
    "the service refuses the change ({detail})",
    "Correct the address or the events. `nightjar hooks list` shows what is subscribed.",
    nothingChanged,
  ),
} as const
