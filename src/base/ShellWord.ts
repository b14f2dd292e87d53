/**
 * One word of a POSIX shell, whatever it contains: for command lines that a person copies, and for those that
 * timers start.
 */
export const shellWord = (word: string): string =>
  /^[A-Za-z0-9_\-.,:/@=+]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
