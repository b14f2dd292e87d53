/**
 * Where each value of a YAML file is, once its nodes are gone: an offset for the value and one for its key,
 * found by the value's path. Four arrays instead of an object per node, because a file may have millions of
 * them.
 */

type Path = ReadonlyArray<PropertyKey>

/** Larger mappings get an index, which is built when it is first needed. */
const indexedMin = 32

export interface Spot {
  readonly at: number
  /** For an item of a list, the item's own offset. */
  readonly keyAt: number
}

export class YamlSpots {
  private readonly at: Array<number> = []
  private readonly keyAt: Array<number> = []
  private readonly names: Array<string | undefined> = []
  private readonly children: Array<Array<number> | undefined> = []
  private readonly indexes = new Map<number, ReadonlyMap<string | undefined, number>>()
  private readonly shared = new Map<string, string>()

  /** Adds a value, with the numbers of its members if it is a mapping or a list; returns its number. */
  add(spot: Spot, name: string | undefined, children?: Array<number>): number {
    this.at.push(spot.at)
    this.keyAt.push(spot.keyAt)
    this.names.push(name === undefined ? undefined : this.share(name))
    return this.children.push(children) - 1
  }

  /** Follows a path from a value as far as it exists. */
  find(from: number, path: Path): Spot {
    let found = from
    for (const step of path) {
      const next = this.child(found, step)
      if (next === undefined) return { at: this.at[found] ?? 0, keyAt: this.keyAt[found] ?? 0 }
      found = next
    }
    return { at: this.at[found] ?? 0, keyAt: this.keyAt[found] ?? 0 }
  }

  private child(parent: number, step: PropertyKey): number | undefined {
    const children = this.children[parent]
    if (children === undefined) return undefined
    if (typeof step === "number") return children[step]
    if (children.length < indexedMin) return children.find((child) => this.names[child] === step)
    return this.indexOf(parent, children).get(String(step))
  }

  private indexOf(parent: number, children: ReadonlyArray<number>) {
    const known = this.indexes.get(parent)
    if (known !== undefined) return known
    // If a key appears twice, the first is found.
    const index = new Map(children.toReversed().map((child) => [this.names[child], child]))
    this.indexes.set(parent, index)
    return index
  }

  private share(name: string): string {
    const known = this.shared.get(name)
    if (known === undefined) this.shared.set(name, name)
    return known ?? name
  }
}
