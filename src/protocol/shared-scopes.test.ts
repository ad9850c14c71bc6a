import { expect, test } from 'bun:test'
import { scopePresets } from './app-password-scopes.ts'
import { permissionsOf } from './scopes.ts'
import { sharedScopes } from './shared-scopes.ts'

const shared = (asked: string, allowed: string) => sharedScopes(asked.split(' '), allowed.split(' '))!.join(' ')

test.each([
  ['atproto transition:generic', 'atproto transition:generic', 'atproto transition:generic'],
  ['atproto transition:generic', scopePresets.post, `atproto ${scopePresets.post}`],
  ['atproto repo:app.bsky.feed.post repo:app.bsky.feed.like', scopePresets.post, `atproto ${scopePresets.post}`],
  ['repo:*?action=delete', 'repo:a.b.c?action=create', ''],
  ['repo?collection=a.b.c&collection=a.b.d', 'repo:a.b.d repo:a.b.e', 'repo:a.b.d'],
  ['repo:*', 'repo:a.b.c repo:a.b.d', 'repo?collection=a.b.c&collection=a.b.d'],
  [
    'repo:*',
    'repo:*?action=create repo:a.b.c?action=delete',
    'repo:*?action=create repo:a.b.c?action=create&action=delete',
  ],
  ['repo:a.b.c', 'repo:a.b.c?action=create repo:a.b.c?action=delete', 'repo:a.b.c?action=create&action=delete'],
  [
    'rpc?lxm=a.b.c&lxm=a.b.d&aud=did:web:one.test%23x',
    'rpc:a.b.c?aud=* rpc:a.b.d?aud=did:web:one.test%23x',
    'rpc?lxm=a.b.c&lxm=a.b.d&aud=did:web:one.test%23x',
  ],
  ['blob:*/*', 'blob:image/png blob:image/gif', 'blob?accept=image/gif&accept=image/png'],
  ['blob:*/*', 'blob:image/*', 'blob:image/*'],
  ['blob:image/png', 'blob:image/*', 'blob:image/png'],
  ['blob:video/mp4', 'blob:image/*', ''],
  ['rpc:a.b.c?aud=*', 'rpc:*?aud=did:web:one.test%23x', 'rpc:a.b.c?aud=did:web:one.test%23x'],
  ['rpc:a.b.c?aud=did:web:one.test%23x', 'rpc:a.b.c?aud=did:web:two.test%23x', ''],
  ['rpc?lxm=a.b.c&lxm=chat.bsky.x&aud=*', 'transition:generic', 'rpc:a.b.c?aud=*'],
  ['rpc?lxm=a.b.c&lxm=chat.bsky.x&aud=*', 'transition:chat.bsky', 'rpc:chat.bsky.x?aud=*'],
  ['transition:chat.bsky', 'transition:generic', ''],
  ['transition:email', 'account:email', 'account:email'],
  ['account:email?action=manage', 'transition:email', 'account:email'],
  ['account:email?action=manage identity:*', 'transition:generic', ''],
  ['transition:generic', 'rpc:*?aud=did:web:one.test%23x', ''],
])('%p within %p is %p', (asked, allowed, both) => {
  expect(shared(asked, allowed)).toBe(both)
})

const numbered = (count: number, name: (i: number) => string) => Array.from({ length: count }, (_, i) => name(i))

test('what comes to far more than can be granted is not written out', () => {
  const services = numbered(140, (i) => `rpc:*?aud=did:web:s${i}.test%23x`)
  expect(
    sharedScopes(
      numbered(100, (i) => `rpc:a.b.c${i}?aud=*`),
      services,
    ),
  ).toBeNull()
  expect(sharedScopes([`rpc?${numbered(500, (i) => `lxm=a.b.c${i}`).join('&')}&aud=*`], services)).toBeNull()
  const repeated = numbered(100, (i) => `rpc?lxm=a.b.c&lxm=a.b.c${i}&aud=*`)
  expect(
    sharedScopes(
      repeated,
      numbered(140, (i) => `rpc:a.b.c?aud=did:web:s${i}.test%23x`),
    ),
  ).toBeNull()
  expect(sharedScopes(['rpc:a.b.c?aud=*'], services)).toHaveLength(140)
})

const texts = [
  'transition:generic',
  'transition:chat.bsky',
  'transition:email',
  'account:email',
  'account:email?action=manage',
  'identity:*',
  'repo:*',
  'repo:*?action=delete',
  'repo:a.b.c',
  'repo?collection=a.b.c&collection=a.b.d&action=create&action=update',
  'blob:*/*',
  'blob:image/*',
  'blob?accept=image/png&accept=video/mp4',
  'rpc:*?aud=did:web:one.test%23x',
  'rpc:a.b.c?aud=*',
  'rpc?lxm=a.b.c&lxm=chat.bsky.x&aud=did:web:one.test%23x',
  'rpc:Chat.bsky.x?aud=*',
]

test('what both allow is what each allows, as far as it can be written', () => {
  const asks = (scope: string, within: string | null) => {
    const granted = permissionsOf(scope, within)
    return [
      ...(['create', 'update', 'delete'] as const).flatMap((action) =>
        ['a.b.c', 'a.b.d', 'a.b.e'].map((collection) => granted.allowsRepo({ action, collection })),
      ),
      ...['image/png', 'image/gif', 'video/mp4'].map((mime) =>
        granted.allowsBlob({ mime: mime as `${string}/${string}` }),
      ),
      ...['a.b.c', 'a.b.z', 'chat.bsky.x', 'Chat.bsky.x'].flatMap((lxm) =>
        ['did:web:one.test#x', 'did:web:two.test#x'].map((aud) => granted.allowsRpc({ lxm, aud })),
      ),
      ...(['read', 'manage'] as const).map((action) => granted.allowsAccount({ attr: 'email', action })),
      granted.allowsIdentity({ attr: 'handle' }),
    ]
  }
  const compare = (asked: string, allowed: string) => {
    const each = asks(asked, allowed)
    const scopes = shared(asked, allowed)
    const both = asks(scopes, allowed)
    const pair = { asked, allowed }
    // All methods of a service cannot be narrowed to those that a transitional scope covers.
    const alone = asked.includes('rpc:*') && allowed.includes('transition') ? both : asks(scopes, null)
    expect({ ...pair, more: alone.filter((may, i) => may && !each[i]) }).toEqual({ ...pair, more: [] })
    if (!allowed.includes('rpc:*') || !asked.includes('transition'))
      expect({ ...pair, both }).toEqual({ ...pair, both: each })
  }
  const allowable = texts.filter((text) => !text.startsWith('identity'))
  for (const one of texts)
    for (const other of allowable) {
      for (const third of texts) compare(`${one} ${third}`, other)
      for (const third of allowable) compare(one, `${other} ${third}`)
    }
})
