/** Describes scopes for spaces in plain words: what is shared with whom, and that it is not encrypted. */
import { plainName, type Wording } from '../../../http/html.ts'
import { listPhrase } from '../../../http/texts.ts'
import type { SpaceScope } from '../../../protocol/space-scopes.ts'
import { collectionWords, deedPhrase, type Words } from './collection-phrases.ts'
import { scopeTexts as texts } from './scope-texts.ts'

const manageTexts = {
  create: texts.spaceManageCreate,
  update: texts.spaceManageUpdate,
  delete: texts.spaceManageDelete,
}

/** `name` is what the author of the type calls it; null if that is not known, which leaves its NSID. */
export function spaceWords(scope: SpaceScope, name: string | null): Words & { parts: Words[] } {
  const { type, authority, skey, collections, actions, manage } = scope
  const spaces = spacesPhrase(scope, name === null ? type : plainName(name))
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

function spacesPhrase({ type, authority }: SpaceScope, name: string): Wording {
  const isAnyType = type === '*'
  if (authority === 'self') return isAnyType ? texts.spacesOwnAny : texts.spacesOwn({ type: name })
  if (authority === '*') return isAnyType ? texts.spacesAny : texts.spacesAll({ type: name })
  return isAnyType ? texts.spacesOfAny({ authority }) : texts.spacesOf({ type: name, authority })
}
