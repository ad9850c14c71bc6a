/** A small name server on loopback: answers from a table, or stays silent until it is told otherwise. */
import { createSocket, type RemoteInfo } from 'node:dgram'
import type { AddressInfo } from 'node:net'

type RecordType = 'A' | 'NS' | 'AAAA' | 'TXT'

const typeNumbers: Record<RecordType, number> = { A: 1, NS: 2, TXT: 16, AAAA: 28 }
const ANSWERED = 0x8180
const SERVER_FAILURE = 2
const NO_SUCH_NAME = 3
const TTL_SECS = 3600

export interface NameServer extends AsyncDisposable {
  /** `address:port`, as a client is told. */
  readonly address: string
  /** `TYPE name` of each question that arrived, in order. */
  readonly questions: string[]
  /**
   * Other types of a name that is set have no data; other names do not exist. `*.example.com` is each name directly
   * under it that is not set, and `*` any name at all.
   */
  set(name: string, type: RecordType, ...values: string[]): void
  /** Questions about this name go on to another port of loopback, and fail if it is closed. */
  delegate(name: string, port: number): void
  /** Questions are kept, and answered once this is off again. */
  setSilent(silent: boolean): void
  /** Questions that arrived and were not answered, each counted once however often it was repeated. */
  readonly waiting: number
}

interface Question {
  message: Buffer
  from: RemoteInfo
  name: string
  type: number
}

export async function startNameServer(): Promise<NameServer> {
  const socket = createSocket('udp4')
  const table = new Map<string, Map<number, string[]>>()
  const questions: string[] = []
  const held = new Map<string, Question>()
  let isSilent = false

  const typesOf = (name: string) => table.get(name) ?? table.get(`*${name.slice(name.indexOf('.'))}`) ?? table.get('*')
  const delegated = new Map<string, number>()
  const reply = (question: Question) => {
    const port = delegated.get(question.name)
    const send = (answer: Buffer) => socket.send(answer, question.from.port, question.from.address)
    if (port === undefined) send(answerTo(question, typesOf(question.name)))
    else passOn(question, port, send)
  }
  socket.on('message', (message, from) => {
    const question = { ...readQuestion(message), message, from }
    const type =
      Object.entries(typeNumbers).find(([, number]) => number === question.type)?.[0] ?? String(question.type)
    questions.push(`${type} ${question.name}`)
    if (isSilent) held.set(`${type} ${question.name}`, question)
    else reply(question)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  return {
    address: `127.0.0.1:${(socket.address() as AddressInfo).port}`,
    questions,
    get waiting() {
      return held.size
    },
    set(name, type, ...values) {
      const types = table.get(name) ?? new Map<number, string[]>()
      table.set(name, types.set(typeNumbers[type], values))
    },
    delegate(name, port) {
      delegated.set(name, port)
    },
    setSilent(silent) {
      isSilent = silent
      if (silent) return
      for (const question of held.values()) reply(question)
      held.clear()
    },
    async [Symbol.asyncDispose]() {
      socket.close()
    },
  }
}

/** Ask another server in place of the client. */
function passOn({ message }: Question, port: number, send: (answer: Buffer) => void): void {
  const line = createSocket('udp4')
  const finish = (answer: Buffer) => {
    send(answer)
    line.close()
  }
  line.once('message', finish)
  line.once('error', () => {
    const failure = Buffer.from(message)
    failure.writeUInt16BE(ANSWERED | SERVER_FAILURE, 2)
    finish(failure)
  })
  line.connect(port, '127.0.0.1', () => line.send(message))
}

/** The first question of a message. RFC 1035, 4.1.2. */
function readQuestion(message: Buffer): { name: string; type: number } {
  const labels: string[] = []
  let at = 12
  for (let length = message[at]!; length > 0; length = message[at]!) {
    labels.push(message.subarray(at + 1, at + 1 + length).toString())
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at + 1) }
}

function answerTo({ message, name, type }: Question, types: Map<number, string[]> | undefined): Buffer {
  const values = types?.get(type) ?? []
  const header = Buffer.alloc(12)
  message.copy(header, 0, 0, 2)
  header.writeUInt16BE(ANSWERED | (types ? 0 : NO_SUCH_NAME), 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(values.length, 6)
  const questionEnd = 12 + name.length + 2 + 4
  return Buffer.concat([header, message.subarray(12, questionEnd), ...values.map((value) => record(type, value))])
}

/** One answer whose name is that of the question. */
function record(type: number, value: string): Buffer {
  const data = dataOf(type, value)
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc00c, 0)
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt32BE(TTL_SECS, 6)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}

function dataOf(type: number, value: string): Buffer {
  if (type === typeNumbers.A) return Buffer.from(value.split('.').map(Number))
  if (type === typeNumbers.NS)
    return Buffer.concat([
      ...value.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
      Buffer.alloc(1),
    ])
  if (type === typeNumbers.TXT) return Buffer.concat([Buffer.from([value.length]), Buffer.from(value)])
  const [head = '', tail = ''] = value.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)))
  const left = groups(head)
  const right = groups(tail)
  const all = [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right]
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]))
}
