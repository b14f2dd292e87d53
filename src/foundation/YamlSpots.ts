/**
 * Where each value of a YAML file stands, once its nodes are gone: an offset for the value and one for its
 * key, found again by the value's path. Four arrays instead of an object per node, because a file may have
 * millions of them.
 */

type Path = ReadonlyArray<PropertyKey>

/** Larger mappings are looked up in an index that is made when it is first asked for. */
const indexedMin = 32

export interface Spot {
  readonly at: number
  /** Of an item of a list, the item's own. */
  readonly keyAt: number
}

export class YamlSpots {
  private readonly at: Array<number> = []
  private readonly keyAt: Array<number> = []
  private readonly names: Array<string | undefined> = []
  private readonly children: Array<Array<number> | undefined> = []
  private readonly indexes = new Map<number, ReadonlyMap<string | undefined, number>>()
  private readonly shared = new Map<string, string>()

  /** A value, with the numbers of the values in it where it is a mapping or a list; answers its number. */
  add(spot: Spot, name: string | undefined, children?: Array<number>): number {
    this.at.push(spot.at)
    this.keyAt.push(spot.keyAt)
    this.names.push(name === undefined ? undefined : this.share(name))
    return this.children.push(children) - 1
  }

  /** Follows a path as far as it exists, from a value on. */
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
    // Of two keys of one name the first is found.
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
