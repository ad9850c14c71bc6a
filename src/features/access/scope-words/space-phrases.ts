/** Describes scopes for spaces in plain words: what is shared with whom, and that it is not encrypted. */
import { plainName, type Wording } from '../../../http/html.ts'
import { foreignPhrase, listPhrase } from '../../../http/texts.ts'
import type { Did, Handle, Nsid } from '../../../protocol/identifiers.ts'
import type { SpaceScope } from '../../../protocol/space-scopes.ts'
import type { SpaceTypeName } from '../../../protocol/space-type-name.ts'
import { collectionWords, deedPhrase, type Words } from './collection-phrases.ts'
import { scopeTexts as texts } from './scope-texts.ts'

const manageTexts = {
  create: texts.spaceManageCreate,
  update: texts.spaceManageUpdate,
  delete: texts.spaceManageDelete,
}

/**
 * The known names of accounts and types in scopes for spaces. Where a name is unknown, the text has the DID or NSID.
 */
export interface SpaceNames {
  /** Verified handles of authorities. */
  handles: ReadonlyMap<Did, Handle>
  /** The names that authors give to types. */
  types: ReadonlyMap<Nsid, SpaceTypeName>
}

export const noSpaceNames: SpaceNames = { handles: new Map(), types: new Map() }

export function spaceWords(scope: SpaceScope, names: SpaceNames): Words & { parts: Words[] } {
  const { type, authority, skey, collections, actions, manage } = scope
  const spaces = spacesPhrase(scope, names)
  const writes = actions.some((action) => !action.startsWith('read'))
  const isAny = collections?.includes('*') ?? true
  const parts: Words[] = [
    ...(skey === '*' ? [] : [part(texts.spaceOnly({ key: skey }))]),
    ...(writes
      ? [part(deedPhrase(actions, isAny ? texts.spaceRecords : listPhrase(collections!.map(collectionWords))))]
      : []),
    ...manage.map((action) => ({ ...part(manageTexts[action]), isGrave: true })),
  ]
  return {
    what: doing(actions, writes)({ spaces }),
    more: texts.spaceMore,
    isGrave: manage.length > 0 || (type === '*' && authority === '*'),
    parts,
  }
}

const part = (what: Wording): Words => ({ what, more: '' })

function doing(actions: SpaceScope['actions'], writes: boolean) {
  if (actions.includes('read')) return writes ? texts.spaceUse : texts.spaceRead
  return writes ? texts.spaceWrite : texts.spaceReadSelf
}

function spacesPhrase({ type, authority }: SpaceScope, names: SpaceNames): Wording {
  const isAnyType = type === '*'
  const name = isAnyType ? '' : typePhrase(type, names.types.get(type))
  if (authority === 'self') return isAnyType ? texts.spacesOwnAny : texts.spacesOwn({ type: name })
  if (authority === '*') return isAnyType ? texts.spacesAny : texts.spacesAll({ type: name })
  const handle = names.handles.get(authority)
  const who = handle === undefined ? authority : `@${handle}`
  return isAnyType ? texts.spacesOfAny({ authority: who }) : texts.spacesOf({ type: name, authority: who })
}

function typePhrase(type: Nsid, name: SpaceTypeName | undefined): Wording {
  if (name === undefined) return type
  // A name of invisible characters counts as none.
  return foreignPhrase((language) => plainName(name.inLanguage[language] ?? name.general ?? '') || type)
}
