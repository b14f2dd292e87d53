/**
 * Facts about logins as sentences for people: what became of each, and what that means for its account.
 * None contains a value of a parameter.
 */
import type { Fact } from "../ledger/Fact.ts"

const verdicts = {
  not_sent: "no login was made",
  unproven: "nobody knows how its login ended: it counts as one that may have failed",
  neutral: "how its login ended is not known, and it no longer counts",
  good: "the source accepted its login",
} as const

type LoginFact = Extract<
  Fact,
  { _tag: "CredentialRejected" | "CredentialReleased" | "LoginJudged" | "LoginAccepted" }
>

export const loginText = (fact: LoginFact): string => {
  switch (fact._tag) {
    case "LoginJudged":
      return `${verdicts[fact.verdict]}${fact.said === undefined ? "" : ` (answer: ${fact.said})`}`
    case "CredentialRejected":
      return (
        `login ${fact.fingerprint.slice(0, 12)} was rejected with ${fact.reason}; ` +
        "not sent again unchanged"
      )
    case "CredentialReleased": {
      const why = fact.because === undefined ? "" : `: ${fact.because}`
      return `login ${(fact.fingerprint ?? fact.account ?? "").slice(0, 12)} was released${why}`
    }
    case "LoginAccepted":
      return "the source accepted this login; earlier rejections no longer hold the account"
  }
}
