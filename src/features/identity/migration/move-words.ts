/** What people are told about a move, on pages and by commands. */
import type { KeyOwner } from './key-changes.ts'
import type { Need, MoveView } from './moving-in.ts'
import type { Stage } from './move-store.ts'

/** What a move to this server means, before it begins. */
export const planWords = {
  comes: [
    'Your posts, likes, follows and all other records.',
    'Every picture and video in them.',
    'Your preferences, such as muted words and saved feeds.',
    'Your followers: they follow your identity, which stays the same.',
  ],
  stays: [
    'Your password and your app passwords: you choose a new password here, and sign in to your apps again.',
    'A handle under the domain of the old server: you get a new one here, unless you have a domain of your own.',
  ],
  oldServer: [
    'It keeps your account as it is until your identity changes. Until then you can cancel the move.',
    'Then it keeps a deactivated copy. Delete that once everything works here.',
  ],
} as const satisfies Record<string, readonly string[]>

/** Whose a rotation key is believed to be. */
export const ownerWords = {
  yours: 'Yours, as far as this server can tell',
  'this-server': 'Of this server',
  'old-server': 'The old server says that it is its own',
  'old-signing-key': 'It signs your posts at the old server',
  unknown: 'The old server does not say whose it is',
} as const satisfies Record<KeyOwner, string>

/** What has happened once a stage is over, in the order in which people see them. */
export const shownStages = {
  repository: 'Posts and other records',
  blobs: 'Pictures and videos',
  preferences: 'Preferences',
  identity: 'Your identity names this server',
  activation: 'Your account is active here',
  farewell: 'The old account is deactivated',
} as const satisfies Partial<Record<Stage, string>>

const shownAs: Partial<Record<Stage, keyof typeof shownStages>> = { archive: 'repository', submission: 'identity' }

/** Returns each stage that people see, and whether it is over, in progress or still to come. */
export function progressOf({ stage }: Pick<MoveView, 'stage'>): { words: string; state: 'over' | 'now' | 'ahead' }[] {
  const shown = Object.entries(shownStages)
  const at = stage === 'done' ? shown.length : shown.findIndex(([name]) => name === (shownAs[stage] ?? stage))
  return shown.map(([, words], place) => ({ words, state: place < at ? 'over' : place === at ? 'now' : 'ahead' }))
}

/** What the holder has to do. */
export const needWords: Readonly<Record<Need, string>> = {
  archive: 'Upload the repository: the CAR file that you have exported from the old server.',
  signature:
    'Check which keys stay, then enter the code that the old server has mailed to you. It changes your identity to name this server.',
  document: 'Publish the signing key and the address of this server in the document of your identity.',
  'sign-in': 'Sign in at the old server again: the session there has ended.',
  decision: 'Decide whether to try again, or to continue without the old server.',
}
