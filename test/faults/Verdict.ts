/** What became of one case of a campaign: wrong where there is a complaint. */
export interface Verdict {
  readonly name: string
  readonly story: string
  readonly complaints: ReadonlyArray<string>
}
