/**
 * A number of bytes for people, in the unit in which it is easy to read. Units are decimal, as those of disks
 * and of `df -H`.
 */
const units = ["bytes", "kB", "MB", "GB", "TB"] as const

/** `1 byte`, `999 bytes`, `1.5 kB`, `12.0 GB`; a kB is 1,000 bytes. */
export const bytesText = (bytes: number): string => {
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)))
  if (power === 0) return bytes === 1 ? "1 byte" : `${bytes} bytes`
  return `${(bytes / 1000 ** power).toFixed(1)} ${units[power]}`
}
