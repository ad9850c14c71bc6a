import { expect, test } from 'bun:test'
import { mutated } from '../../tests/support/mutations.ts'
import { Random } from '../../tests/support/random.ts'
import { parseDid, parseNsid, parseRecordKey, type Did, type Nsid, type RecordKey } from './identifiers.ts'
import { parseSpaceUri } from './space-address.ts'
import {
  formatSpaceScope,
  parseSpaceScope,
  permitsSpaceManagement,
  permitsSpaceRead,
  permitsSpaceWrite,
  spaceScopeOf,
  withDeclared,
  spaceActions,
  spaceManagement,
} from './space-scopes.ts'

const alice = 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' as Did
const bob = 'did:web:bob.example.com' as Did
const NOTE = 'com.example.note' as Nsid
const space = (authority: Did, skey = 'self', type = 'com.example.forum') =>
  parseSpaceUri(`at://${authority}/space/${type}/${skey}`)!

test('a scope has defaults, of which management is none', () => {
  expect<unknown>(parseSpaceScope('space:com.example.forum')).toEqual({
    type: 'com.example.forum',
    authority: 'self',
    skey: '*',
    collections: null,
    actions: ['read', 'create', 'update', 'delete'],
    manage: [],
  })
  expect(parseSpaceScope('space:*')).toMatchObject({ type: '*', collections: [] })
  expect(parseSpaceScope('space?type=com.example.forum')).toEqual(parseSpaceScope('space:com.example.forum'))
})

test('lists are in one order, and any collection includes all', () => {
  expect(
    parseSpaceScope('space:*?action=delete&action=read_self&action=delete&manage=update&manage=create'),
  ).toMatchObject({ actions: ['read_self', 'delete'], manage: ['create', 'update'] })
  expect(parseSpaceScope('space:*?collection=com.example.z&collection=com.example.a')).toMatchObject({
    collections: ['com.example.a', 'com.example.z'],
  })
  expect(parseSpaceScope('space:*?collection=com.example.z&collection=*')).toMatchObject({ collections: ['*'] })
})

test('a scope with anything ill-formed, empty, unknown or repeated is none', () => {
  for (const text of [
    [
      '',
      'space',
      'space:',
      'space?',
      'space:?',
      'spaces:*',
      'Space:*',
      'space:forum',
      'space:%zz',
      'space:com.example.*',
    ],
    ['space:*?authority=', 'space:*?authority=alice.test', `space:*?authority=self&authority=${alice}`],
    ['space:*?skey=', 'space:*?skey=.', 'space:*?skey=a&skey=b', 'space:*?skey=a%2Fb', 'space:*?type=*'],
    ['space:*?collection=', 'space:*?collection=note', 'space:*?collection=*&collection=x'],
    ['space:*?action=', 'space:*?action=*', 'space:*?action=write', 'space:*?action=read,create'],
    ['space:*?manage=', 'space:*?manage=*', 'space:*?manage=read', 'space:*?more=x', 'space:*?type=a&type=b'],
    [`space:*?skey=${'x'.repeat(100_000)}`],
  ].flat())
    expect([text.slice(0, 99), parseSpaceScope(text)]).toEqual([text.slice(0, 99), null])
})

test('reading all includes reading oneself, and neither depends on a collection', () => {
  const own = parseSpaceScope(`space:com.example.forum?authority=*&action=read_self&collection=${NOTE}`)!
  const all = parseSpaceScope(`space:com.example.forum?authority=${bob}&action=read`)!
  expect([permitsSpaceRead(own, space(bob), 'read_self'), permitsSpaceRead(own, space(bob), 'read')]).toEqual([
    true,
    false,
  ])
  expect([permitsSpaceRead(all, space(bob), 'read_self'), permitsSpaceRead(all, space(bob), 'read')]).toEqual([
    true,
    true,
  ])
  expect(permitsSpaceRead(all, space(alice), 'read')).toBe(false)
  expect(permitsSpaceRead(all, space(bob, 'self', 'com.example.other'), 'read')).toBe(false)
})

test('what is to be resolved grants nothing before, and one account and its collections afterwards', () => {
  const scope = parseSpaceScope('space:com.example.forum?skey=self')!
  expect(permitsSpaceRead(scope, space(alice), 'read')).toBe(false)
  const anyone = parseSpaceScope('space:com.example.forum?authority=*')!
  expect(permitsSpaceWrite(anyone, space(alice), 'create', NOTE)).toBe(false)
  const resolved = withDeclared(spaceScopeOf(scope, alice), [NOTE])
  expect(formatSpaceScope(resolved)).toBe(`space:com.example.forum?authority=${alice}&skey=self&collection=${NOTE}`)
  expect(permitsSpaceWrite(resolved, space(alice), 'create', NOTE)).toBe(true)
  expect(permitsSpaceWrite(resolved, space(alice), 'create', 'com.example.other' as Nsid)).toBe(false)
  expect(permitsSpaceWrite(resolved, space(alice, 'other'), 'create', NOTE)).toBe(false)
  expect(permitsSpaceWrite(resolved, space(bob), 'create', NOTE)).toBe(false)
  expect(permitsSpaceRead(spaceScopeOf(scope, bob), space(alice), 'read')).toBe(false)
})

test('management is granted by name, each action for itself', () => {
  const scope = parseSpaceScope('space:*?authority=*&manage=update')!
  for (const action of spaceManagement)
    expect([action, permitsSpaceManagement(scope, space(alice), action)]).toEqual([action, action === 'update'])
  expect(permitsSpaceManagement(parseSpaceScope('space:*?authority=*')!, space(alice), 'create')).toBe(false)
})

/** A second reader: the sorted parts of a scope, or null. */
function partsOf(text: string): string[] | null {
  const [name, query, ...none] = text.split(/\?(.*)/s)
  if (none.join('') !== '' || /[\n\r\u2028\u2029]/.test(text)) return null
  const given = (query ?? '')
    .split('&')
    .filter((part) => part !== '')
    .map((part) => part.split(/=(.*)/s) as [string, string?])
    .map(
      ([key, value = '']) => [key, value].map((one) => new URLSearchParams(`x=${one}`).get('x')!) as [string, string],
    )
  if (name !== 'space') {
    if (!name!.startsWith('space:')) return null
    try {
      given.push(['type', decodeURIComponent(name!.slice('space:'.length))])
    } catch {
      return null
    }
  }
  const holds: Record<string, (value: string) => boolean> = {
    type: (value) => value === '*' || parseNsid(value) !== null,
    authority: (value) => value === '*' || value === 'self' || parseDid(value) !== null,
    skey: (value) => value === '*' || parseRecordKey(value) !== null,
    collection: (value) => value === '*' || parseNsid(value) !== null,
    action: (value) => spaceActions.some((action) => action === value),
    manage: (value) => spaceManagement.some((action) => action === value),
  }
  const count = (key: string) => given.filter(([name]) => name === key).length
  const isGood = given.every(([key, value]) => Object.hasOwn(holds, key) && holds[key]!(value))
  if (!isGood || count('type') !== 1 || count('authority') > 1 || count('skey') > 1) return null
  if (count('authority') === 0) given.push(['authority', 'self'])
  if (count('skey') === 0) given.push(['skey', '*'])
  if (count('action') === 0)
    given.push(...spaceActions.slice(1).map((action) => ['action', action] as [string, string]))
  const all = given.map(([key, value]) => `${key} ${value}`)
  const kept = all.includes('collection *') ? all.filter((part) => !/^collection [^*]/.test(part)) : all
  return [...new Set(kept)].toSorted()
}

test('a second reader reads the same from 10,000 changed scopes, and each has one text', () => {
  const random = new Random(1610)
  const texts = [
    'space:com.example.forum',
    `space:com.example.forum?authority=${bob}&skey=self&collection=${NOTE}&collection=*&action=read&manage=create`,
    `space?type=*&authority=did%3Aweb%3Alocalhost%253A1&action=create&action=delete`,
    `space:*?authority=*&collection=${NOTE}&collection=com.example.a&manage=update&manage=delete`,
  ]
  let accepted = 0
  for (let i = 0; i < 10_000; i++) {
    let text: string = random.of(texts)
    for (let changes = random.below(3); changes > 0; changes--) text = mutated(text, random, 'aZ09.-_~:/%?#&=*+ é\n')
    const scope = parseSpaceScope(text)
    const parts =
      scope &&
      [
        [`type ${scope.type}`, `authority ${scope.authority}`, `skey ${scope.skey}`],
        (scope.collections ?? []).map((value) => `collection ${value}`),
        scope.actions.map((value) => `action ${value}`),
        scope.manage.map((value) => `manage ${value}`),
      ]
        .flat()
        .toSorted()
    expect([text, parts]).toEqual([text, partsOf(text)])
    if (scope === null) continue
    accepted++
    expect(parseSpaceScope(formatSpaceScope(scope))).toEqual(scope)
  }
  expect(accepted).toBeGreaterThan(3000)
})

test('a key of a space is no pattern', () => {
  const scope = parseSpaceScope('space:*?authority=*&skey=a~b')!
  expect(scope.skey).toBe('a~b' as RecordKey)
  expect(permitsSpaceRead(scope, space(alice, 'a~b'), 'read')).toBe(true)
  expect(permitsSpaceRead(scope, space(alice, 'a~bc'), 'read')).toBe(false)
})
