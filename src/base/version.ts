import { version as packageVersion } from '../../package.json' with { type: 'json' }

export const SOFTWARE_NAME = 'holdfast'

/** `major.minor.patch`; package.json is its one home. */
export const VERSION: string = packageVersion

/** How the software names itself, in the health answer and on the command line. */
export const SOFTWARE = `${SOFTWARE_NAME} v${VERSION}`
