/**
 * Reads a page as a browser does, as far as `page.html` asks for one: runs its script in a document that can make
 * elements and texts, and nothing else, so that markup in a value would have to come out as an element.
 */
import { readFileSync } from "node:fs"
import { runInNewContext } from "node:vm"

export const template = readFileSync("src/report/page.html", "utf8")

export class Element {
  readonly tag: string
  readonly attributes = new Map<string, string>()
  readonly childNodes: Array<Element | string> = []
  readonly listeners = new Map<string, (event: object) => void>()
  parentElement: Element | undefined
  hidden = false
  value = ""
  clientWidth = 960
  clientHeight = 352
  constructor(tag: string) {
    this.tag = tag
  }
  get children(): ReadonlyArray<Element> {
    return this.childNodes.filter((node) => node instanceof Element)
  }
  get textContent(): string {
    return this.childNodes.map((node) => (node instanceof Element ? node.textContent : node)).join("")
  }
  set textContent(text: string) {
    this.childNodes.splice(0, Infinity, text)
  }
  append(...nodes: ReadonlyArray<Element | string>): void {
    for (const node of nodes) {
      if (!(node instanceof Element) && typeof node !== "string")
        throw new Error(`not a node: ${String(node)}`)
      if (node instanceof Element) {
        const there = node.parentElement?.childNodes.indexOf(node) ?? -1
        if (there >= 0) node.parentElement?.childNodes.splice(there, 1)
        node.parentElement = this
      }
      this.childNodes.push(node)
    }
  }
  setAttribute(name: string, value: string): void {
    this.attributes.set(name, String(value))
  }
  getAttribute(name: string): string | undefined {
    return this.attributes.get(name)
  }
  removeAttribute(name: string): void {
    this.attributes.delete(name)
  }
  addEventListener(event: string, listener: (event: object) => void): void {
    this.listeners.set(event, listener)
  }
  /** A pen that draws nowhere. */
  getContext() {
    return new Proxy({}, { get: () => () => undefined, set: () => true })
  }
}

/** The body once the script has run. */
export const readPage = (page: string): Element => {
  const body = new Element("body")
  const [, data = ""] = /<script type="application\/json" id="data">([^]*?)<\/script>/.exec(page) ?? []
  const [, script = ""] = /<script>([^]*?)<\/script>/.exec(page) ?? []
  const source = new Element("script")
  source.textContent = data
  const nowhere = () => ({ addEventListener: () => undefined, getPropertyValue: () => "" })
  runInNewContext(script, {
    document: {
      body,
      getElementById: () => source,
      createElement: (tag: string) => new Element(tag),
      createElementNS: (_: string, tag: string) => new Element(tag),
    },
    Intl,
    getComputedStyle: nowhere,
    matchMedia: nowhere,
    addEventListener: () => undefined,
    requestAnimationFrame: (render: () => void) => render(),
    devicePixelRatio: 1,
  })
  return body
}

/** All elements of this kind below, in the order of the page. */
export const all = (of: Element, isMeant: (one: Element) => boolean): ReadonlyArray<Element> =>
  of.children.flatMap((one) => [...(isMeant(one) ? [one] : []), ...all(one, isMeant)])

const blocks = new Set("h1 h2 h3 p li tr nav code summary dt dd output svg".split(" "))

/** What a person reads, a line for each heading, paragraph, row and picture; `#` says how deep a heading is. */
export const linesOf = (of: Element): ReadonlyArray<string> =>
  of.children.flatMap((one) => {
    if (one.tag === "svg") {
      const label = one.getAttribute("aria-label")
      return label === undefined ? [] : [`[${label}]`]
    }
    if (!blocks.has(one.tag)) return linesOf(one)
    const parts = one.tag === "tr" || one.tag === "nav" ? one.children : [one]
    const text = parts.map(
      (part) =>
        `${part.textContent}${linesOf(part)
          .filter((l) => l[0] === "[")
          .join("")}`,
    )
    const below = one.tag === "li" && one.children.some(({ tag }) => tag === "p") ? linesOf(one) : undefined
    const depth = /^h\d$/.test(one.tag) ? `${"#".repeat(Number(one.tag[1]))} ` : ""
    return below ?? [`${depth}${text.join(" | ")}`]
  })
