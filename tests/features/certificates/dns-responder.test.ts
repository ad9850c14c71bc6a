/** The name server that answers DNS-01 challenges, and what strangers can do with it. */
import { expect, test } from 'bun:test'
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { connect } from 'node:net'
import { openDnsResponder } from '../../../src/platform/network/dns-responder.ts'
import { freeDnsPort } from '../../support/ports.ts'
import { setUp } from '../../support/set-up.ts'
import { errorOf } from '../../support/thrown.ts'

const NAME = '_acme-challenge.example.com'
const ADDRESS = '127.0.0.1'
const texts = ['a'.repeat(43), 'b'.repeat(43)]
const zones = { records: new Map([[NAME, texts]]), nameServer: 'pds.example.com' }

const server = setUp(
  async () => {
    const port = await freeDnsPort()
    return { port, responder: await openDnsResponder({ addresses: [ADDRESS], port }, zones) }
  },
  ({ responder }) => responder.close(),
)

function resolver(): Resolver {
  const own = new Resolver({ tries: 1, timeout: 5000 })
  own.setServers([`${ADDRESS}:${server.port}`])
  return own
}

/** A name in the form of the wire. */
const encoded = (name: string) =>
  Buffer.concat([
    ...name.split('.').map((label) => Buffer.concat([Uint8Array.of(label.length), Buffer.from(label)])),
    Uint8Array.of(0),
  ])

interface Asked {
  flags?: number
  questions?: number
  type?: number
  class?: number
  name?: Uint8Array
  rest?: Uint8Array
}

function query({ flags = 0x0100, questions = 1, type = 16, class: of = 1, name = encoded(NAME), rest }: Asked = {}) {
  const header = Buffer.alloc(12)
  header.writeUInt16BE(0x1234, 0)
  header.writeUInt16BE(flags, 2)
  header.writeUInt16BE(questions, 4)
  const end = Buffer.alloc(4)
  end.writeUInt16BE(type, 0)
  end.writeUInt16BE(of, 2)
  return Buffer.concat([header, name, end, rest ?? new Uint8Array()])
}

let addresses = 1

/**
 * Sends datagrams from an address of its own, which has a budget, and returns what comes back until the answer to a
 * last, good query.
 */
const exchange = (...queries: Uint8Array[]) => exchangeAt(server.port, queries)

async function exchangeAt(port: number, queries: readonly Uint8Array[]): Promise<Buffer[]> {
  const socket = createSocket('udp4')
  const source = `127.0.1.${addresses++}`
  await new Promise<void>((resolve) => socket.bind(0, source, resolve))
  const answers: Buffer[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const last = query()
  last.writeUInt16BE(0xffff, 0)
  socket.on('message', (answer: Buffer) => {
    if (answer.readUInt16BE(0) === 0xffff) resolve()
    else answers.push(answer)
  })
  for (const each of queries) socket.send(each, port, ADDRESS)
  // The budget of this address may be used up for a moment.
  const asking = setInterval(() => socket.send(last, port, ADDRESS), 100)
  await promise
  clearInterval(asking)
  socket.close()
  return answers
}

const codeOf = (answer: Buffer) => answer[3]! & 0x0f

test('a resolver finds the texts, the name server and the start of the zone', async () => {
  expect((await resolver().resolveTxt(NAME)).flat().toSorted()).toEqual(texts)
  expect((await resolver().resolveTxt(NAME.toUpperCase())).flat().toSorted()).toEqual(texts)
  expect(await resolver().resolveNs(NAME)).toEqual(['pds.example.com'])
  expect(await resolver().resolveSoa(NAME)).toMatchObject({ nsname: 'pds.example.com', minttl: 1 })
})

test('a name below does not exist, and other types have no data', async () => {
  expect(await errorOf(resolver().resolveTxt(`x.${NAME}`))).toMatchObject({ code: 'ENOTFOUND' })
  const [answer] = await exchange(query({ type: 1 }))
  expect({ code: codeOf(answer!), answers: answer!.readUInt16BE(6), authority: answer!.readUInt16BE(8) }).toEqual({
    code: 0,
    answers: 0,
    authority: 1,
  })
})

test('other names are refused, as are other classes', async () => {
  expect(await errorOf(resolver().resolveTxt('example.com'))).toMatchObject({ code: 'EREFUSED' })
  expect(await errorOf(resolver().resolveTxt(`x${NAME}`))).toMatchObject({ code: 'EREFUSED' })
  const answers = await exchange(query({ name: encoded('com') }), query({ class: 3 }))
  expect(answers.map(codeOf)).toEqual([5, 5])
})

test('the question comes back as it was spelled, which resolvers compare', async () => {
  const [answer] = await exchange(query({ name: encoded('_AcMe-challenge.eXample.com') }))
  expect(answer!.includes(encoded('_AcMe-challenge.eXample.com'))).toBe(true)
  expect(answer!.readUInt16BE(2)).toBe(0x8500)
})

test('malformed queries get a short answer or none', async () => {
  const pointer = Uint8Array.of(0xc0, 12)
  const long = encoded(Array.from({ length: 60 }, () => 'abcde').join('.'))
  const cut = query().subarray(0, 20)
  const malformed = [
    query({ name: pointer }),
    query({ name: Buffer.concat([Uint8Array.of(3), Buffer.from('www'), pointer]) }),
    query({ name: long }),
    query({ questions: 0 }),
    query({ questions: 65_535 }),
    cut,
    query({ name: Uint8Array.of(63, 1, 2) }).subarray(0, 15),
  ]
  const answers = await exchange(...malformed)
  expect(answers.map(codeOf)).toEqual(malformed.map(() => 1))
  expect(answers.every(({ length }) => length === 12)).toBe(true)
  const unanswered = [new Uint8Array(), query().subarray(0, 11), query({ flags: 0x8000 })]
  expect(await exchange(...unanswered)).toEqual([])
  expect((await exchange(query({ flags: 0x2800 }))).map(codeOf)).toEqual([4])
})

test('what follows the question, such as EDNS, changes nothing', async () => {
  const edns = Uint8Array.of(0, 0, 41, 0x10, 0, 0, 0, 0, 0, 0, 0)
  const [plain] = await exchange(query())
  const [extended] = await exchange(query({ rest: edns }))
  expect(extended).toEqual(plain!)
})

test('what one address sends beyond its share takes nothing from others', async () => {
  const port = await freeDnsPort()
  const responder = await openDnsResponder({ addresses: [ADDRESS], port }, zones)
  const refused = query({ name: encoded('other.example.org') })
  const many = Array.from({ length: 220 }, () => refused)
  const [, answers] = await Promise.all([exchangeAt(port, many), exchangeAt(port, [refused])])
  expect(answers.length).toBe(1)
  await responder.close()
})

test('random bytes stop nothing', async () => {
  const noise = Array.from({ length: 300 }, (_, index) => crypto.getRandomValues(new Uint8Array(index)))
  await exchange(...noise)
  expect((await resolver().resolveTxt(NAME)).length).toBe(2)
})

test('10,000 queries for other names get few answers, and none that is longer than its query', async () => {
  const refused = query({ name: encoded('other.example.org') })
  const answers = await exchange(...Array.from({ length: 10_000 }, () => refused))
  expect(answers.length).toBeLessThan(1000)
  expect(answers.every(({ length }) => length <= refused.length)).toBe(true)
  expect((await resolver().resolveTxt(NAME)).length).toBe(2)
})

test('an answer that is longer than 512 bytes is cut off, and whole over TCP', async () => {
  const port = await freeDnsPort()
  const many = Array.from({ length: 20 }, (_, index) => String(index).repeat(43).slice(0, 43))
  const responder = await openDnsResponder(
    { addresses: [ADDRESS], port },
    { ...zones, records: new Map([[NAME, many]]) },
  )
  const own = new Resolver({ tries: 1, timeout: 5000 })
  own.setServers([`${ADDRESS}:${port}`])
  expect((await own.resolveTxt(NAME)).length).toBe(20)
  await responder.close()
})

/** Returns what comes back over a TCP connection until it ends, and whether the server has ended it. */
function overTcp(...chunks: Uint8Array[]): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  const received: Buffer[] = []
  const socket = connect(server.port, ADDRESS, () => {
    for (const chunk of chunks) socket.write(chunk)
  })
  socket.on('data', (chunk: Buffer) => received.push(chunk))
  socket.on('error', () => socket.destroy())
  socket.on('close', () => resolve(Buffer.concat(received)))
  return promise
}

const prefixed = (message: Uint8Array) => Buffer.concat([Uint8Array.of(message.length >> 8, message.length), message])

test('a connection ends after 16 queries, at a length that no query has, and when it is silent', async () => {
  const asked = Array.from({ length: 40 }, () => prefixed(query()))
  const answers = await overTcp(...asked)
  const [one] = await exchange(query())
  expect(answers.length).toBe(16 * (one!.length + 2))
  expect((await overTcp(Uint8Array.of(0xff, 0xff, 1, 2, 3))).length).toBe(0)
  expect((await overTcp(Uint8Array.of(0))).length).toBe(0)
})
