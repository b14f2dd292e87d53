/**
 * Results bodies that are made to fill a memory: each a few bytes over and over, up to any size, in pieces, so
 * that whoever sends a hundred of 200 MB needs no memory for them. The same seed, the same body.
 */
import { bodyBounds } from "../../src/service/BodyBounds.ts"
import { defaultLimits } from "../../src/client/Exchange.ts"
import { seeded } from "../../src/sandbox/state/Reading.ts"

interface Form {
  readonly name: string
  /** What stands in front, over and over, and behind; `unit` knows how often it has been written before. */
  readonly head: string
  readonly unit: (index: number) => string
  readonly tail: string
}

const list = (name: string, unit: Form["unit"], last = "0"): Form => ({
  name,
  head: '{"data":[',
  unit,
  tail: `${last}],"is_closed":true,"status":"COMPLETED"}`,
})

const text = (name: string, unit: string): Form => ({
  name,
  head: '{"data":[{"product":"p","sub_family":"p:s","text":"',
  unit: () => unit,
  tail: '"}],"is_closed":true}',
})

const record = (fields: string): string => `{"product":"p","sub_family":"p:s",${fields}},`
const document = (index: number): string => `doc-${index.toString(36).padStart(8, "0")}`
const megabyteOf = (character: string): string => character.repeat(1024 * 1024)
/** The longest text that is read. */
const longest = (): string => "w".repeat(bodyBounds.textBytesMax - 1)

export const attackForms: ReadonlyArray<Form> = [
  list("objects", () => "{},"),
  list("lists", () => "[],"),
  list("numbers", () => "0,"),
  list("keys that are numbers", (index) => `{"${1_000_000 + index}":0},`),
  text("one text", "x"),
  text("one text of escapes", "\\u00e9"),
  { ...text("one ticket", "c"), head: '{"data":[],"ticket":"', tail: '","is_closed":true}' },
  { name: "levels", head: '{"data":', unit: () => "[", tail: "" },
  // What follows is within every bound but the last: it may be read, parsed and even published.
  list("documents", (index) => record(`"attachment_id":"${document(index)}"`)),
  list("one list of documents", (index) => `{"attachments":["${document(index)}"]},`),
  list("long records", (index) => record(`"n":${index},"text":"${"y".repeat(1_000)}"`)),
  list("large texts", (index) => record(`"n":${index},"text":"${megabyteOf("z")}"`)),
  list("the longest text", () => record(`"text":"${longest()}"`)),
  // One such character, and every character of its text takes two bytes.
  list("large texts in two bytes", (index) => record(`"n":${index},"text":"λ${megabyteOf("z")}"`)),
]

/** What a body of results may have: every second one of an attack is as large as is just read. */
const readMegabytes = Math.floor(defaultLimits.results.bytesMax / 1024 / 1024) - 2

const pieceBytes = 1024 * 1024
/** So many pieces are made and sent again and again: making them anew would slow the attack down. */
const piecesMade = 4

export interface AttackBody {
  readonly name: string
  readonly bytes: number
  /** Whether its length is told beforehand. */
  readonly isPromised: boolean
  readonly pieces: () => Iterable<Uint8Array>
}

/** Whole units up to a megabyte, or a single one that is larger. */
const pieceOf = ({ unit }: Form, from: number): { readonly piece: Buffer; readonly units: number } => {
  const units: Array<string> = []
  for (let length = 0; length < pieceBytes; length += units.at(-1)!.length)
    units.push(unit(from + units.length))
  return { piece: Buffer.from(units.join("")), units: units.length }
}

export const attackBody = (seed: number, megabytes: number): AttackBody => {
  const draw = seeded("attack", seed)
  // Every form comes once before one comes twice.
  const form = attackForms[seed % attackForms.length]!
  const made: Array<Buffer> = []
  const isEnough = () => made.length === piecesMade || made.some(({ length }) => length > 2 * pieceBytes)
  for (let units = 0; !isEnough();) {
    const next = pieceOf(form, units)
    made.push(next.piece)
    units += next.units
  }
  const head = Buffer.from(form.head)
  const tail = Buffer.from(form.tail)
  const whole = made.reduce((sum, { length }) => sum + length, 0)
  const wanted = draw.chance(0.5) ? megabytes : Math.min(megabytes, readMegabytes)
  const rounds = Math.max(1, Math.floor((wanted * 1024 * 1024) / whole))
  return {
    name: form.name,
    bytes: head.length + rounds * whole + tail.length,
    isPromised: draw.chance(0.5),
    pieces: function* () {
      yield head
      for (let round = 0; round < rounds; round++) yield* made
      yield tail
    },
  }
}
