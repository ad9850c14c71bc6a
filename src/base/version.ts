import { version as packageVersion } from '../../package.json' with { type: 'json' }

export const SOFTWARE_NAME = 'holdfast'

/** `major.minor.patch`, defined in package.json only. */
export const VERSION: string = packageVersion

/** The name and version that the health response and the command line print. */
export const SOFTWARE = `${SOFTWARE_NAME} v${VERSION}`

/** Returns the three numbers of `major.minor.patch`, or null if the text is anything else. */
export function parseVersion(text: string): [major: number, minor: number, patch: number] | null {
  const numbers = /^(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})$/.exec(text)?.slice(1).map(Number)
  return (numbers as [number, number, number] | undefined) ?? null
}

/**
 * Returns a number below, at or above zero, as the first version is older, the same or newer. Throws if one is no
 * version.
 */
export function compareVersions(first: string, second: string): number {
  const [a, b] = [parseVersion(first), parseVersion(second)]
  if (a === null || b === null) throw new Error(`${first} and ${second} are not both versions`)
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2]
}
