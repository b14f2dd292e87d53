/**
 * What happens in the standing sessions: one script per number, in the words of the widget's steps and of
 * logins. Seconds count from the first read of the session; negative ones are before it.
 */

export type ScriptStep =
  | readonly [seconds: number, name: "start" | "consent" | "leave" | "cancel" | "client-cancel"]
  | readonly [seconds: number, name: "connect", engine_reference: string, words: string]

export interface StandingScript {
  readonly name: string
  readonly meaning: string
  /** Words of the session itself. */
  readonly words?: string
  readonly steps: ReadonlyArray<ScriptStep>
}

const taxes = "es-tax-agency:website"
const work = "es-social-security:website"
const university = "es-university:website"
const traffic = "es-traffic:website"

/** Started and consented, the sources connected one after another, and left, long before the first read. */
const over = (
  ...sources: ReadonlyArray<readonly [engine: string, words: string]>
): ReadonlyArray<ScriptStep> => [
  [-900, "start"],
  [-870, "consent"],
  ...sources.map(([engine, words], index) => [-840 + index * 20, "connect", engine, words] as const),
  [-700, "leave"],
]

const quick = "queue-1+run-30"

/** The number of a script is its position. */
export const standingScripts: ReadonlyArray<StandingScript> = [
  {
    name: "completed",
    meaning: "completed: taxes, work history and studies, a consent with documents, and an attachment",
    steps: over([taxes, `${quick}+records-9`], [work, `${quick}+records-6+attach-1`], [university, quick]),
  },
  {
    name: "partial",
    meaning:
      "partial: one source reads for 4 more minutes and gains records; for 2 more it shows a record that " +
      "the final results do not have and lacks one that they have",
    steps: [
      [-300, "start"],
      [-285, "consent"],
      [-280, "connect", university, `${quick}+records-4`],
      [-270, "connect", work, "queue-0+run-510+records-20+late-120"],
      [-200, "leave"],
    ],
  },
  { name: "unstarted", meaning: "created, never started by the customer: 412", steps: [] },
  {
    name: "failed",
    meaning: "failed: the only source returned nothing",
    steps: over([taxes, `${quick}+end-FAILED`]),
  },
  {
    name: "customer_cancelled",
    meaning: "the customer cancelled while a source was being read: the records read so far remain",
    steps: [
      [-600, "start"],
      [-580, "consent"],
      [-560, "connect", taxes, "queue-0+run-100+records-10"],
      [-500, "cancel"],
    ],
  },
  {
    name: "timed_out",
    meaning: "timed out: the customer gave consent and never came back",
    steps: [
      [-7200, "start"],
      [-7170, "consent"],
    ],
  },
  {
    name: "locked",
    meaning: "locked for 30 seconds after the first read (504); then like 0",
    words: "locked-930",
    steps: over([taxes, `${quick}+records-9`], [work, `${quick}+records-6`]),
  },
  {
    name: "never_final",
    meaning: "partial forever: is_closed never becomes true",
    steps: over([taxes, `${quick}+records-5+neverfinal`]),
  },
  {
    name: "company",
    meaning: "completed: the customer is a company",
    words: "company",
    steps: over([taxes, `${quick}+records-6`]),
  },
  {
    name: "client_cancelled",
    meaning: "the client cancelled before the customer connected a source",
    steps: [
      [-600, "start"],
      [-580, "consent"],
      [-500, "client-cancel"],
    ],
  },
  {
    name: "system_cancelled",
    meaning: "the platform cancelled while a source was being read",
    words: "system-120",
    steps: [
      [-600, "start"],
      [-580, "consent"],
      [-560, "connect", taxes, "queue-0+run-300+records-9"],
    ],
  },
  {
    name: "misconfigured",
    meaning: "ended with CONFIGURATION_ERROR as soon as it was started",
    words: "broken",
    steps: [[-600, "start"]],
  },
  {
    name: "no_consent",
    meaning: "completed, without a consent in its results",
    words: "noconsent",
    steps: over([traffic, `${quick}+records-5`]),
  },
  {
    name: "documents",
    meaning: "completed, with five attachments and those of the work history",
    steps: over([work, `${quick}+records-4+attach-5`]),
  },
  {
    name: "odd",
    meaning: "completed, with records that break their schema or are of an unknown family",
    steps: over([taxes, `${quick}+records-4+odd`]),
  },
  {
    name: "large",
    meaning: "completed with 12,000 records: every read holds the lock for 12 seconds (504)",
    steps: over([taxes, `${quick}+records-12000`]),
  },
  {
    name: "live",
    meaning:
      "the customer is at the consent form at the first read, consents after 60 seconds, connects " +
      "after 90, leaves after 150; final after about 5 minutes",
    steps: [
      [-30, "start"],
      [60, "consent"],
      [90, "connect", taxes, "queue-10+run-200+records-8"],
      [150, "leave"],
    ],
  },
  {
    name: "second_login",
    meaning: "completed: the first login was refused, the second one succeeded",
    steps: over(
      [taxes, `${quick}+heal-1-INCORRECT_CREDENTIALS`],
      [university, quick],
      [taxes, `${quick}+records-5`],
    ),
  },
  {
    name: "empty",
    meaning: "completed without any records",
    steps: over([taxes, `${quick}+records-0`]),
  },
  {
    name: "every_family",
    meaning: "completed: records of all features",
    steps: over(
      ["sandbox-tax:website", `${quick}+records-45`],
      ["es-bank:api", `${quick}+records-60`],
      ["cloud-hosting:api", `${quick}+records-6`],
      ["es-utility:mobile", `${quick}+records-8`],
    ),
  },
  {
    name: "refused",
    meaning: "failed: the source refused the login, and the customer left",
    steps: over([taxes, `${quick}+end-BLOCKED_USER`]),
  },
  {
    name: "abandoned",
    meaning:
      "completed: the customer never closed the widget, which gave up half an hour after the last record",
    words: "idle-1800",
    steps: [
      [-7200, "start"],
      [-7170, "consent"],
      [-7150, "connect", university, `${quick}+records-4`],
    ],
  },
]
