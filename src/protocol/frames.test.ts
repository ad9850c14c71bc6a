import { describe, expect, test } from 'bun:test'
import { lexicons } from '@atproto/api'
import { ipldToLex } from '@atproto/lexicon'
import { type Data, type DataObject, decode, decodeFirst, encode } from './cbor.ts'
import { cidOfCbor } from './cid.ts'
import { errorFrame, eventFrame, framePieces, frameTime, infoFrame, type RepoEvent } from './frames.ts'
import type { Did, Handle, Tid } from './identifiers.ts'

const did = 'did:plc:7iza6de2dwap2sbkpav7c6c6' as Did
const rev = '3jzfcijpj2z2a' as Tid
const cid = cidOfCbor(new Uint8Array([1]))
const [seq, time, blocks] = [7, '2026-01-02T03:04:05.678Z', new Uint8Array([1, 2, 3])]

const frame = (event: RepoEvent) => eventFrame(event, seq, Date.parse(time))

function parse(bytes: Uint8Array): { header: Data; body: DataObject } {
  const { value: header, rest } = decodeFirst(bytes)
  return { header, body: decode(rest) as DataObject }
}

/** Header and body, the body valid by the lexicon of the stream. */
function message(bytes: Uint8Array, type: string): DataObject {
  const { header, body } = parse(bytes)
  expect(header).toEqual({ op: 1, t: `#${type}` })
  expect(lexicons.validate(`com.atproto.sync.subscribeRepos#${type}`, ipldToLex({ ...body }))).toMatchObject({
    success: true,
  })
  return body
}

describe('#commit', () => {
  const event = { type: 'commit', did, commit: cid, rev, blocks } as const

  test('of the first commit has a null since and no prevData', () => {
    const body = message(frame({ ...event, since: null, prevData: null, ops: [] }), 'commit')
    expect(Object.keys(body).toSorted()).toEqual([
      'blobs',
      'blocks',
      'commit',
      'ops',
      'rebase',
      'repo',
      'rev',
      'seq',
      'since',
      'time',
      'tooBig',
    ])
    expect(body).toMatchObject({
      seq,
      time,
      repo: did,
      rev,
      since: null,
      ops: [],
      blobs: [],
      rebase: false,
      tooBig: false,
    })
  })

  test('of a later one has the revision and tree before, and says what each record was', () => {
    const ops = [
      { action: 'create', path: 'a.b.c/1', cid, prev: null },
      { action: 'update', path: 'a.b.c/2', cid, prev: cid },
      { action: 'delete', path: 'a.b.c/3', cid: null, prev: cid },
    ] as const
    const body = message(frame({ ...event, since: rev, prevData: cid, ops }), 'commit')
    expect([body['since'], String(body['prevData']), body['blocks']]).toEqual([rev, cid.toString(), blocks])
    expect(
      (body['ops'] as DataObject[]).map((op) => [op['action'], op['cid'] === null, Object.hasOwn(op, 'prev')]),
    ).toEqual([
      ['create', false, false],
      ['update', false, true],
      ['delete', true, true],
    ])
  })
})

test('#sync carries the commit alone', () => {
  expect(message(frame({ type: 'sync', did, rev, blocks }), 'sync')).toEqual({ seq, time, did, rev, blocks })
})

test('#identity has its handle only when there is one to tell', () => {
  expect(message(frame({ type: 'identity', did }), 'identity')).toEqual({ seq, time, did })
  expect(message(frame({ type: 'identity', did, handle: 'a.test' as Handle }), 'identity')).toEqual({
    seq,
    time,
    did,
    handle: 'a.test',
  })
})

test('#account has a status exactly when it is not active', () => {
  expect(message(frame({ type: 'account', did, status: 'active' }), 'account')).toEqual({
    seq,
    time,
    did,
    active: true,
  })
  expect(message(frame({ type: 'account', did, status: 'deleted' }), 'account')).toEqual({
    seq,
    time,
    did,
    active: false,
    status: 'deleted',
  })
})

test('the pieces of a frame, around its number and its time, are the frame', () => {
  const op = { action: 'create', path: 'a.b.c/seq', cid, prev: null } as const
  const events: RepoEvent[] = [
    { type: 'commit', did, commit: cid, rev, blocks, since: null, prevData: null, ops: [] },
    { type: 'commit', did, commit: cid, rev, blocks, since: rev, prevData: cid, ops: [op, op] },
    { type: 'sync', did, rev, blocks },
    { type: 'identity', did },
    { type: 'identity', did, handle: 'a.test' as Handle },
    { type: 'account', did, status: 'active' },
    { type: 'account', did, status: 'deleted' },
  ]
  for (const event of events) {
    const { head, middle, rest } = framePieces(event)
    for (const number of [0, 23, 24, 255, 256, 65_535, 65_536, 2 ** 32, Number.MAX_SAFE_INTEGER]) {
      const whole = Buffer.concat([head, encode(number), middle, frameTime(Date.parse(time)), rest])
      expect(whole.equals(eventFrame(event, number, Date.parse(time)))).toBe(true)
    }
  }
})

test('#info has no place in the sequence', () => {
  expect(message(infoFrame('OutdatedCursor', 'too old'), 'info')).toEqual({
    name: 'OutdatedCursor',
    message: 'too old',
  })
})

test('an error frame has no type', () => {
  expect(parse(errorFrame('FutureCursor', 'Cursor in the future.'))).toEqual({
    header: { op: -1 },
    body: { error: 'FutureCursor', message: 'Cursor in the future.' },
  })
})
