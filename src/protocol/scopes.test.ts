import { RepoPermission } from '@atproto/oauth-scopes'
import { expect, spyOn, test } from 'bun:test'
import { DeclaredScopes, expandScopes, grantsOf, narrowedScopes, parseScopes, permissionsOf } from './scopes.ts'

test('a request keeps its order, and loses what is repeated or unknown', () => {
  expect(
    parseScopes(
      'transition:generic atproto repo:com.example.note atproto space:x repo:app.bsky.* blob:%zz rpc:*?aud=*',
    ),
  ).toEqual(['transition:generic', 'atproto', 'repo:com.example.note'])
})

test('a grant is part of what was asked, never without the base and never more', () => {
  const asked = ['atproto', 'repo:com.example.note', 'blob:*/*']
  expect(narrowedScopes(asked, new Set(['blob:*/*', 'transition:generic']))).toEqual(['atproto', 'blob:*/*'])
  expect(narrowedScopes(asked, new Set())).toEqual(['atproto'])
})

test('transition:generic reaches neither chat nor account nor identity', () => {
  const generic = permissionsOf('atproto transition:generic')
  const aud = 'did:web:api.example.com#svc'
  expect(generic.allowsRepo({ collection: 'com.example.note', action: 'delete' })).toBe(true)
  expect(generic.allowsBlob({ mime: 'image/png' })).toBe(true)
  expect(generic.allowsRpc({ lxm: 'app.bsky.feed.getTimeline', aud })).toBe(true)
  expect(generic.allowsRpc({ lxm: 'chat.bsky.convo.getLog', aud })).toBe(false)
  expect(generic.allowsAccount({ attr: 'email', action: 'read' })).toBe(false)
  expect(generic.allowsIdentity({ attr: '*' })).toBe(false)
  expect(permissionsOf('atproto transition:chat.bsky').allowsRpc({ lxm: 'chat.bsky.convo.getLog', aud })).toBe(true)
  expect(permissionsOf('atproto transition:email').allowsAccount({ attr: 'email', action: 'read' })).toBe(true)
  expect(permissionsOf('atproto transition:email').allowsAccount({ attr: 'email', action: 'manage' })).toBe(false)
})

test('the audience of an rpc scope is compared as it is written, fragment included, the method exactly', () => {
  const granted = permissionsOf('atproto rpc:com.example.get?aud=did:web:api.example.com%23svc')
  expect(granted.allowsRpc({ lxm: 'com.example.get', aud: 'did:web:api.example.com#svc' })).toBe(true)
  expect(granted.allowsRpc({ lxm: 'com.example.get', aud: 'did:web:api.example.com' })).toBe(false)
  expect(granted.allowsRpc({ lxm: 'com.example.get', aud: 'did:web:api.example.com#other' })).toBe(false)
  expect(granted.allowsRpc({ lxm: 'com.example.getMore', aud: 'did:web:api.example.com#svc' })).toBe(false)
  expect(granted.allowsRpc({ lxm: 'com.example.get', aud: 'did:web:other.example.com#svc' })).toBe(false)
})

const spaceHost = 'did:web:spaces.example.com#atproto_space_host'

test('no scope is for permissioned data: neither one by name, nor a wide one, nor one of a permission set', async () => {
  const aud = 'did:web:api.example.com%23svc'
  const named = [
    `rpc:com.atproto.space.notifyWrite?aud=*`,
    `rpc:com.atproto.simplespace.createSpace?aud=${aud}`,
    `rpc?lxm=com.atproto.space.getRecord&lxm=com.atproto.space.getBlob&aud=*`,
    `rpc:com.example.get?aud=${spaceHost.replace('#', '%23')}`,
    `rpc:*?aud=${spaceHost.replace('#', '%23')}`,
  ]
  expect(parseScopes(['atproto', ...named].join(' '))).toEqual(['atproto'])
  const mixed = `rpc?lxm=com.atproto.space.getRecord&lxm=com.example.get&aud=*`
  expect(parseScopes(mixed)).toEqual([mixed])
  // Also in grants that were stored before.
  const stored = permissionsOf(['atproto', 'transition:generic', ...named, mixed, `rpc:*?aud=${aud}`].join(' '))
  for (const lxm of ['com.atproto.space.notifyWrite', 'com.atproto.Space.getRecord', 'com.atproto.simplespace.x'])
    expect([lxm, stored.allowsRpc({ lxm, aud: 'did:web:api.example.com#svc' })]).toEqual([lxm, false])
  expect(stored.allowsRpc({ lxm: 'com.example.get', aud: spaceHost })).toBe(false)
  expect(stored.allowsRpc({ lxm: '*', aud: spaceHost })).toBe(false)
  expect(stored.allowsRpc({ lxm: 'com.example.get', aud: 'did:web:api.example.com#svc' })).toBe(true)
  const permission = (lxm: string) => ({ type: 'permission' as const, resource: 'rpc', lxm: [lxm], aud: '*' })
  const set = { type: 'permission-set' as const, permissions: ['com.atproto.space.getRecord'].map(permission) }
  const expanded = await expandScopes(['include:com.atproto.space.auth'], async () => set)
  expect(expanded.ok && grantsOf(expanded.scopes)).toEqual([])
})

test('a permission set grants what lies in its own group of names, and nothing else', async () => {
  const set = {
    type: 'permission-set' as const,
    title: 'Notes',
    permissions: [
      { type: 'permission' as const, resource: 'repo', collection: ['com.example.note', 'com.example.sub.thing'] },
      { type: 'permission' as const, resource: 'repo', collection: ['com.other.note'] },
      { type: 'permission' as const, resource: 'repo', collection: ['*'] },
      { type: 'permission' as const, resource: 'rpc', lxm: ['com.example.get'], inheritAud: true },
      { type: 'permission' as const, resource: 'rpc', lxm: ['com.example.fixed'], aud: 'did:web:api.example.com#svc' },
      { type: 'permission' as const, resource: 'blob', accept: ['*/*'] },
      { type: 'permission' as const, resource: 'account', attr: 'email' },
    ],
  }
  const source = async (nsid: string) => (nsid === 'com.example.auth' ? set : null)
  const withAudience = await expandScopes(
    ['atproto', 'include:com.example.auth?aud=did:web:api.example.com%23svc'],
    source,
  )
  if (!withAudience.ok) throw new Error(withAudience.reason)
  expect(grantsOf(withAudience.scopes)).toEqual([
    'atproto',
    'repo?collection=com.example.note&collection=com.example.sub.thing',
    'rpc:com.example.get?aud=did:web:api.example.com%23svc',
  ])
  expect(withAudience.scopes[1]).toMatchObject({ title: 'Notes' })
  const without = await expandScopes(['atproto', 'include:com.example.auth'], source)
  expect(without.ok && grantsOf(without.scopes)).toEqual([
    'atproto',
    'repo?collection=com.example.note&collection=com.example.sub.thing',
  ])
  expect(await expandScopes(['atproto', 'include:com.example.missing'], source)).toMatchObject({ ok: false })
  const six = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => `include:com.example.${name}`)
  expect(await expandScopes(six, async () => set)).toMatchObject({ ok: false })
})

test('a scope is declared if its text is, or one that means the same', () => {
  const declared = new DeclaredScopes([
    'atproto',
    'repo?collection=com.example.b&collection=com.example.a',
    'new:thing',
    'blob:%zz',
  ])
  for (const scope of ['atproto', 'repo?collection=com.example.a&collection=com.example.b', 'new:thing', 'blob:%zz'])
    expect([scope, declared.has(scope)]).toEqual([scope, true])
  for (const scope of ['repo:com.example.a', 'new:other', 'new%3Athing', 'blob:%z', 'include:com.example.set'])
    expect([scope, declared.has(scope)]).toEqual([scope, false])
})

test('what is asked about many records is parsed once for each scope', () => {
  const scopes = Array.from({ length: 300 }, (_, i) => `repo:com.example.r${i}`)
  const parse = spyOn(RepoPermission, 'fromString')
  try {
    const permissions = permissionsOf(`atproto ${scopes.join(' ')}`)
    for (let i = 0; i < 200; i++)
      expect(permissions.allowsRepo({ collection: 'com.example.r299', action: 'create' })).toBe(true)
    expect(parse.mock.calls.length).toBeLessThanOrEqual(scopes.length + 1)
  } finally {
    parse.mockRestore()
  }
})
