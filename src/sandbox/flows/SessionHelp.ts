/**
 * The help for trying flow sessions on the embedded service: how to create and step through one, the words
 * of a session, and which ones already exist. Built from the tables that the service itself uses.
 */
import { sessionWords } from "./FlowWords.ts"
import { standingScripts } from "./StandingScripts.ts"

const words = sessionWords.map(({ word, meaning }) => `  ${word.padEnd(12)}${meaning}`).join("\n")
const standing = standingScripts
  .map(({ meaning }, number) => `  ${number.toString(16).padStart(8, "0")}  ${meaning}`)
  .join("\n")

export const sessionHelp = `{flows_url}/es-public-administration/v1/widget drives flow sessions:
POST creates one ({"customer_id": …, "features": […], "behaviour": …}, all optional), GET /SESSION shows
it, and POST /SESSION/STEP takes a step: start, consent, connect, answer, leave, cancel, client-cancel.
\`behaviour\` takes words joined by +:

${words}

Sessions whose id is 5e55000000000000 and eight of these hex digits already exist:

${standing}
  from 00000100 on, decided by the seed`
