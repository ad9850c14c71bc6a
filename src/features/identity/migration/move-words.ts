/** Words about a move, on pages and in commands. */
import type { KeyOwner } from './key-changes.ts'
import type { Need, MoveView } from './moving-in.ts'
import type { Stage } from './move-store.ts'

/** What a move to this server means, before it begins. */
export const planWords = {
  comes: {
    comesRecords: 'Your posts, likes, follows and all other records.',
    comesPictures: 'Every picture and video in them.',
    comesPreferences: 'Your preferences, such as muted words and saved feeds.',
    comesFollowers: 'Your followers: they follow your identity, which stays the same.',
  },
  stays: {
    staysPasswords:
      'Your password and your app passwords: you choose a new password here, and sign in to your apps again.',
    staysHandle:
      'A handle under the domain of the old server: you get a new one here, unless you have a domain of your own.',
  },
  oldServer: {
    oldKeeps: 'It keeps your account as it is until your identity changes. Until then you can cancel the move.',
    oldCopy: 'Then it keeps a deactivated copy. Delete that once everything works here.',
  },
} as const satisfies Record<string, Record<string, string>>

/** To whom a rotation key seems to belong. */
export const ownerWords = {
  yours: 'Yours, as far as this server can tell',
  'this-server': 'Of this server',
  'old-server': 'The old server says that it is its own',
  'old-signing-key': 'It signs your posts at the old server',
  unknown: 'The old server does not say whose it is',
} as const satisfies Record<KeyOwner, string>

/** What each stage brings, in the order in which people see the stages. */
export const shownStages = {
  repository: 'Posts and other records',
  blobs: 'Pictures and videos',
  preferences: 'Preferences',
  identity: 'Your identity names this server',
  activation: 'Your account is active here',
  farewell: 'The old account is deactivated',
} as const satisfies Partial<Record<Stage, string>>

const shownAs: Partial<Record<Stage, keyof typeof shownStages>> = { archive: 'repository', submission: 'identity' }

export type ShownStage = keyof typeof shownStages

/** Returns the stages that people see, and whether each is over, in progress or still to come. */
export function progressOf({ stage }: Pick<MoveView, 'stage'>): {
  name: ShownStage
  state: 'over' | 'now' | 'ahead'
}[] {
  const shown = Object.keys(shownStages) as ShownStage[]
  const at = stage === 'done' ? shown.length : shown.findIndex((name) => name === (shownAs[stage] ?? stage))
  return shown.map((name, place) => ({ name, state: place < at ? 'over' : place === at ? 'now' : 'ahead' }))
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
