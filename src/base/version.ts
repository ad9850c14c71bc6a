import { version as packageVersion } from '../../package.json' with { type: 'json' }

export const SOFTWARE_NAME = 'holdfast'

/** `major.minor.patch`, defined in package.json only. */
export const VERSION: string = packageVersion

/** The name and version that the health response and the command line print. */
export const SOFTWARE = `${SOFTWARE_NAME} v${VERSION}`
