/**
 * Decides which rotation keys of an identity that moves here stay and which go, and to whom they seem to belong. The
 * old server may claim any key as its own, so the holder has the last word.
 */
import { invalidRequest } from '../../../http/errors.ts'
import { MAX_ROTATION_KEYS, SIGNING_KEY_NAME, type PlcState } from '../../../protocol/plc.ts'

/** What is known of the keys, and what the holder wants. Keys are did:keys. */
export interface KeyNotes {
  /** Keys that the old server names as its own; null if it does not say. */
  claimed: readonly string[] | null
  /** Keys with which the old server has signed. */
  proven: readonly string[]
  /** Keys of the identity that are to stay; null for those that seem to be the holder's. */
  kept: readonly string[] | null
}

export const noNotes: KeyNotes = { claimed: null, proven: [], kept: null }

/** `old-signing-key`: it signs the repository at the old server. `unknown`: the old server does not say. */
export type KeyOwner = 'yours' | 'this-server' | 'old-server' | 'old-signing-key' | 'unknown'

export interface NamedKey {
  key: string
  /** To whom the key seems to belong. */
  owner: KeyOwner
  /** Whether the holder may decide otherwise. */
  isChoice: boolean
}

/** Keys that stay and keys that go, each by rank. */
export interface KeyChanges {
  stay: NamedKey[]
  go: NamedKey[]
}

export interface KeyQuestion {
  /** The identity as it is. */
  state: Pick<PlcState, 'rotationKeys' | 'verificationMethods'>
  /** Keys of this server. */
  ours: readonly string[]
  /** The key that the holder adds. */
  recoveryKey: string | null
  notes: KeyNotes
}

/**
 * The key that the holder adds ranks first, then the identity's keys that stay, then the keys of this server. More than
 * `MAX_ROTATION_KEYS` may stay; `requireFewKeys` refuses that.
 */
export function keyChanges({ state, ours, recoveryKey, notes }: KeyQuestion): KeyChanges {
  const { claimed, proven, kept } = notes
  const ownerOf = (key: string): KeyOwner => {
    if (ours.includes(key)) return 'this-server'
    if (key === recoveryKey) return 'yours'
    if (proven.includes(key)) return 'old-server'
    if (key === state.verificationMethods[SIGNING_KEY_NAME]) return 'old-signing-key'
    if (claimed === null) return 'unknown'
    return claimed.includes(key) ? 'old-server' : 'yours'
  }
  const named = (key: string): NamedKey => {
    const owner = ownerOf(key)
    const isChoice = owner !== 'this-server' && key !== recoveryKey && !proven.includes(key)
    return { key, owner, isChoice }
  }
  const stays = ({ key, owner, isChoice }: NamedKey) =>
    owner === 'this-server' || (isChoice && (kept === null ? owner === 'yours' : kept.includes(key)))
  const present = [...new Set(state.rotationKeys)].map(named)
  const staying = present.filter(stays).map(({ key }) => key)
  const stay = [...new Set([...(recoveryKey === null ? [] : [recoveryKey]), ...staying, ...ours])].map(named)
  const names = new Set(stay.map(({ key }) => key))
  return { stay, go: present.filter(({ key }) => !names.has(key)) }
}

/** Throws `InvalidRequest` unless a directory takes this many keys. */
export function requireFewKeys({ stay }: KeyChanges): void {
  if (stay.length > MAX_ROTATION_KEYS) throw invalidRequest(tooManyKeys(stay.length))
}

export const tooManyKeys = (count: number): string =>
  `The identity would have ${count} rotation keys, and the directory takes ${MAX_ROTATION_KEYS}: choose which stay`

/**
 * Throws `InvalidRequest` if a key that is to stay is not a key of the identity, if the old server has signed with it,
 * or if too many keys would stay.
 */
export function requireKeepable(question: KeyQuestion): void {
  const [proven, present] = [new Set(question.notes.proven), new Set(question.state.rotationKeys)]
  for (const key of question.notes.kept ?? []) {
    if (proven.has(key)) throw invalidRequest(`keepKeys: the old server has signed with ${key}`)
    if (!present.has(key)) throw invalidRequest(`keepKeys: ${key} is not among the rotation keys of the identity`)
  }
  requireFewKeys(keyChanges(question))
}
