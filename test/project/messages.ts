/**
 * `schemas/messages.md`: every error, warning and finding of the catalogue with what was kept and what to do
 * next, in the order of the catalogue.
 */
import { catalogue, isMessageId, keptOf, messageOf } from "../../src/messages/Catalogue.ts"
import type { Message } from "../../src/messages/Message.ts"

const chapters: ReadonlyArray<readonly [Message["kind"], string, string]> = [
  ["error", "Errors", "They end a command, with the exit code named here."],
  ["warning", "Warnings", "They change neither the outcome of a task nor an exit code."],
  [
    "finding",
    "Findings",
    "`verify` and `repair` end with exit code 3 if they find something, `doctor` with 2, or with 6 if only " +
      "a service is at fault.",
  ],
]

const entry = (id: string, message: Message): string => {
  const { exit_code, happened, next } = message
  return [
    `### ${id}`,
    "",
    `${happened}${exit_code === undefined ? "" : ` (exit code ${exit_code})`}`,
    "",
    `- Kept: ${keptOf(message)}`,
    `- Next: ${next}`,
    "",
  ].join("\n")
}

export const messagesDocument = (): string => {
  const entries = Object.keys(catalogue)
    .filter(isMessageId)
    .map((id) => [id, messageOf(id)] as const)
  const text = chapters.map(([kind, title, about]) =>
    [
      `## ${title}`,
      "",
      about,
      "",
      ...entries.filter(([, message]) => message.kind === kind).map(([id, message]) => entry(id, message)),
    ].join("\n"),
  )
  return (
    "# Messages\n\n" +
    "Generated from `src/messages` by `npm run generate`. Each message ends with its id in brackets, and\n" +
    "`nightjar explain ID` prints the same entry. Values are shown as `{name}`. A problem in a job file is reported\n" +
    "with its file, line and column and says what is right; all of these belong to `job-invalid`. The summary and\n" +
    "`nightjar explain` with a task's id explain the reason of a task.\n\n" +
    text.join("\n")
  )
}
