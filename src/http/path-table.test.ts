import { expect, test } from 'bun:test'
import { PathTable } from './path-table.ts'

const table = new PathTable<string>()
for (const [method, path] of [
  ['GET', '/'],
  ['GET', '/metrics'],
  ['GET', '/:did'],
  ['POST', '/:did'],
  ['GET', '/:did/log'],
  ['GET', '/accounts/:did/devices/:id'],
] as const)
  table.add(method, path, `${method} ${path}`)

const found = (method: string, path: string) => table.find(method, path)?.value ?? null

test('a path is found by its method, with or without a slash at its end', () => {
  expect(found('GET', '/')).toBe('GET /')
  expect(found('GET', '/metrics')).toBe('GET /metrics')
  expect(found('GET', '/metrics/')).toBe('GET /metrics')
  expect(found('PUT', '/metrics')).toBeNull()
  for (const path of [
    '/metrics//',
    '//metrics',
    '',
    '/Metrics/x',
    '/accounts//devices/1',
    '/accounts/a/devices/1/2',
    `/a${'/a'.repeat(5000)}`,
  ])
    expect(found('GET', path)).toBeNull()
})

test('a path of its own goes before a pattern, method by method', () => {
  expect(found('GET', '/did:plc:a')).toBe('GET /:did')
  expect(found('POST', '/metrics')).toBe('POST /:did')
})

test('values of a path are decoded once; what cannot be decoded is not found', () => {
  expect(table.find('GET', '/accounts/did%3Aweb%3Aa%252Fb/devices/7')).toEqual({
    value: 'GET /accounts/:did/devices/:id',
    params: { did: 'did:web:a%2Fb', id: '7' },
  })
  expect(found('GET', '/%zz/log')).toBeNull()
})

test('a path is declared once', () => {
  expect(() => table.add('GET', '/metrics', 'again')).toThrow('declared twice')
})

test('the methods of a path are those that are declared for it', () => {
  const table = new PathTable<string>()
  table.add('GET', '/things/:id', 'read')
  table.add('DELETE', '/things/:id', 'remove')
  table.add('POST', '/things', 'make')
  expect(table.methodsAt('/things/7').toSorted()).toEqual(['DELETE', 'GET'])
  expect(table.methodsAt('/things')).toEqual(['POST'])
  expect(table.methodsAt('/other')).toEqual([])
})
