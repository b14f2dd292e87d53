/**
 * A planted bug as text: what stands exactly once in a source gives way to something else. Nothing is
 * written; whoever loads the source, the test runner or Node itself, uses the changed text instead.
 */
export interface Change {
  /** The source, from the root of the repository. */
  readonly in: string
  readonly replace: string
  readonly by: string
}

/** Undefined when what is to be replaced does not stand there exactly once. */
const plantIn = (text: string, { replace, by }: Change): string | undefined => {
  const at = text.indexOf(replace)
  if (replace === "" || at < 0 || text.includes(replace, at + 1)) return undefined
  return `${text.slice(0, at)}${by}${text.slice(at + replace.length)}`
}

/** All changes that concern one file, one after another; undefined as soon as one does not fit. */
export const plantAll = (text: string, file: string, changes: ReadonlyArray<Change>): string | undefined =>
  changes
    .filter((change) => change.in === file)
    .reduce<string | undefined>(
      (planted, change) => (planted === undefined ? undefined : plantIn(planted, change)),
      text,
    )

/** Where processes that tests start find the changes to plant: JSON in this variable of the environment. */
export const plantedVariable = "NIGHTJAR_PLANTED_BUG"

/** Sources that stand in a folder of their own, below the same paths, and take the place of those of the repository. */
export const sourcesVariable = "NIGHTJAR_PLANTED_SOURCES"

/** How an error that no test threw is told: the run fails over it all the same. */
export const outsideTests = "outside any test: "
