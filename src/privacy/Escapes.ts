/**
 * How a text reads once its escapes are decoded: percent signs of addresses, entities of HTML, backslashes of
 * JSON and program text. Encoders differ in which signs they escape and how; decoding covers all of them.
 */

/** A byte, or the bytes of one character in UTF-8; a number or a name; a code or one sign. */
const escapes = new RegExp(
  [
    "%[cd][0-9a-f]%[89ab][0-9a-f]|%e[0-9a-f](?:%[89ab][0-9a-f]){2}|%f[0-7](?:%[89ab][0-9a-f]){3}",
    "%[0-9a-f]{2}",
    "&(?:#\\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,7}\\d{0,2});",
    "\\\\(?:u[0-9a-f]{4}|x[0-9a-f]{2}|[^])",
  ].join("|"),
  "gi",
)

/** Of ISO 8859-1 from its 160th character on. */
const latinNames =
  "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn " +
  "sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave " +
  "Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml " +
  "ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN " +
  "szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute " +
  "icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml " +
  "yacute thorn yuml"

/** Each after its sign. */
const signNames =
  "!excl \"quot #num $dollar %percnt &amp 'apos (lpar )rpar *ast +plus ,comma .period /sol :colon " +
  ";semi <lt =equals >gt ?quest @commat [lsqb [lbrack \\bsol ]rsqb ]rbrack ^Hat _lowbar `grave " +
  "{lcub {lbrace |verbar |vert }rcub }rbrace €euro ŒOElig œoelig ŠScaron šscaron ŸYuml –ndash " +
  "—mdash ‘lsquo ’rsquo “ldquo ”rdquo"

const entities: ReadonlyMap<string, string> = new Map([
  ["Tab", "\t"],
  ["NewLine", "\n"],
  ...latinNames.split(" ").map((name, at) => [name, String.fromCharCode(160 + at)] as const),
  ...signNames.split(" ").map((sign) => [sign.slice(1), sign.slice(0, 1)] as const),
])

const controls: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" }

/** In a text in capitals, names of entities and letters after backslashes are capitals too. */
const read: Readonly<Record<string, (escape: string) => string>> = {
  "%": (escape) => {
    const bytes = Buffer.from(escape.replaceAll("%", ""), "hex")
    return bytes.toString(bytes.length === 1 ? "latin1" : "utf8")
  },
  "&": (escape) => {
    const name = escape.slice(1, -1)
    if (name[0] !== "#") return entities.get(name) ?? entities.get(name.toLowerCase()) ?? escape
    const code = Number(name.slice(1).replace(/^x/i, "0x"))
    return code <= 0x10ffff ? String.fromCodePoint(code) : escape
  },
  "\\": (escape) => {
    const sign = escape.slice(1)
    if (sign.length > 1) return String.fromCharCode(Number.parseInt(sign.slice(1), 16))
    return controls[sign.toLowerCase()] ?? sign
  },
}

const readEscape = (escape: string): string => read[escape.charAt(0)]!(escape)

/** The same text if it has no escapes; what they stand for may be escapes again. */
export const decodeEscapes = (text: string): string =>
  /[%&\\]/.test(text) ? text.replaceAll(escapes, readEscape) : text

/** Where each character of the decoded text begins in this one; one more is its end. */
export const placesIn = (text: string): ReadonlyArray<number> => {
  const places: Array<number> = []
  let from = 0
  for (const { 0: escape, index } of text.matchAll(escapes)) {
    while (from < index) places.push(from++)
    for (let unit = 0; unit < readEscape(escape).length; unit++) places.push(from)
    from += escape.length
  }
  while (from <= text.length) places.push(from++)
  return places
}
