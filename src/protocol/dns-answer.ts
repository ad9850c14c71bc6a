/**
 * Answers of an authoritative name server that has TXT records for a few names and nothing else. Source: RFC 1035, 4;
 * RFC 2308 for negative answers.
 *
 * Anyone may send a query with a forged source address. So that answers do not amplify traffic, one over UDP has at
 * most 512 bytes, and a refusal is not longer than its query.
 */

/** TXT values by name. Names are in lower case, each the apex of a zone of its own. */
export type TextRecords = ReadonlyMap<string, readonly string[]>

export interface Zones {
  records: TextRecords
  /** The host that answers for all these names. */
  nameServer: string
}

const HEADER_BYTES = 12
const MAX_NAME_BYTES = 255
const MAX_LABEL_BYTES = 63
/** Longest message over UDP, and longest query of all. RFC 1035, 4.2.1. */
export const MAX_MESSAGE_BYTES = 512
const MAX_TEXT_BYTES = 255

const types = { NS: 2, SOA: 6, TXT: 16 } as const
const CLASS_IN = 1
const responseCodes = { ok: 0, malformed: 1, noSuchName: 3, notImplemented: 4, refused: 5 } as const
type ResponseCode = keyof typeof responseCodes

/** Flags of the header: response, opcode, authoritative, truncated, recursion desired. */
const RESPONSE = 0x8000
const OPCODE = 0x7800
const AUTHORITATIVE = 0x0400
const TRUNCATED = 0x0200
const RECURSION_DESIRED = 0x0100

/** Resolvers must not answer the next ACME order with the cached proof of the previous one. */
const TTL_SECS = 1
const SERIAL = 1
const REFRESH_SECS = 3600
const RETRY_SECS = 600
const EXPIRE_SECS = 86_400

interface Question {
  /** In lower case. */
  name: string
  type: number
  class: number
  /** Offset in the query at which the question ends. */
  end: number
}

/**
 * Returns the answer to a query. Returns null for a message that gets no answer: one without a whole header, or one
 * that is itself an answer. An answer longer than `maxBytes` is truncated and says so.
 */
export function dnsAnswer(query: Uint8Array, zones: Zones, maxBytes = MAX_MESSAGE_BYTES): Uint8Array | null {
  if (query.length < HEADER_BYTES) return null
  const view = new DataView(query.buffer, query.byteOffset, query.byteLength)
  const flags = view.getUint16(2)
  if ((flags & RESPONSE) !== 0) return null
  const header = { id: view.getUint16(0), flags: flags & (OPCODE | RECURSION_DESIRED) }
  if ((flags & OPCODE) !== 0) return message(header, 'notImplemented')
  const question = view.getUint16(4) === 1 ? questionIn(query, view) : null
  if (question === null) return message(header, 'malformed')
  const asked = query.subarray(HEADER_BYTES, question.end)
  const zone = question.class === CLASS_IN ? zoneOf(question.name, zones.records) : null
  if (zone === null) return message(header, 'refused', { asked })
  const own = { id: header.id, flags: header.flags | AUTHORITATIVE }
  const whole = message(own, question.name === zone ? 'ok' : 'noSuchName', {
    asked,
    ...sectionsFor(question, zone, zones),
  })
  return whole.length <= maxBytes ? whole : message({ ...own, flags: own.flags | TRUNCATED }, 'ok', { asked })
}

/** Whether an answer refuses the query, instead of saying something about one of our names. */
export const isRefusal = (answer: Uint8Array): boolean =>
  ![responseCodes.ok, responseCodes.noSuchName].some((code) => code === (answer[3]! & 0x0f))

/**
 * Returns null if the question is cut off, or if its name is too long or compressed: no name precedes the question to
 * which a pointer could refer.
 */
function questionIn(query: Uint8Array, view: DataView): Question | null {
  const labels: string[] = []
  let at = HEADER_BYTES
  for (;;) {
    const length = query[at]
    if (length === undefined || length > MAX_LABEL_BYTES || at + 1 + length > query.length) return null
    at += 1 + length
    if (length === 0) break
    if (at - HEADER_BYTES >= MAX_NAME_BYTES) return null
    labels.push(
      Buffer.from(query.subarray(at - length, at))
        .toString('latin1')
        .toLowerCase(),
    )
  }
  if (at + 4 > query.length) return null
  // A dot within a label does not end the label, so such a name equals none of ours.
  const name = labels.some((label) => label.includes('.')) ? '' : labels.join('.')
  return { name, type: view.getUint16(at), class: view.getUint16(at + 2), end: at + 4 }
}

/** Returns the name in `records` that equals `name` or is a parent of it; null if there is none. */
function zoneOf(name: string, records: TextRecords): string | null {
  for (let at = 0; at >= 0; at = name.indexOf('.', at) + 1 || -1) if (records.has(name.slice(at))) return name.slice(at)
  return null
}

interface Sections {
  /** The question, as it was sent. */
  asked?: Uint8Array
  answers?: readonly Uint8Array[]
  authority?: readonly Uint8Array[]
}

/**
 * The records of the asked type; otherwise the SOA record, which says that there are none and how long to remember
 * that.
 */
function sectionsFor(question: Question, zone: string, { records, nameServer }: Zones): Sections {
  const start = () => record(zone, types.SOA, startOfAuthority(nameServer))
  if (question.name !== zone) return { authority: [start()] }
  const answers: Readonly<Record<number, () => Uint8Array[]>> = {
    [types.TXT]: () => (records.get(zone) ?? []).map((text) => record(zone, types.TXT, textData(text))),
    [types.NS]: () => [record(zone, types.NS, encodedName(nameServer))],
    [types.SOA]: () => [start()],
  }
  const found = answers[question.type]?.() ?? []
  return found.length > 0 ? { answers: found } : { authority: [start()] }
}

function message(
  { id, flags }: { id: number; flags: number },
  code: ResponseCode,
  { asked, answers = [], authority = [] }: Sections = {},
): Uint8Array {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt16BE(id, 0)
  header.writeUInt16BE(RESPONSE | flags | responseCodes[code], 2)
  header.writeUInt16BE(asked === undefined ? 0 : 1, 4)
  header.writeUInt16BE(answers.length, 6)
  header.writeUInt16BE(authority.length, 8)
  return Buffer.concat([header, asked ?? new Uint8Array(), ...answers, ...authority])
}

function record(name: string, type: number, data: Uint8Array): Uint8Array {
  const head = Buffer.alloc(10)
  head.writeUInt16BE(type, 0)
  head.writeUInt16BE(CLASS_IN, 2)
  head.writeUInt32BE(TTL_SECS, 4)
  head.writeUInt16BE(data.length, 8)
  return Buffer.concat([encodedName(name), head, data])
}

const encodedName = (name: string): Uint8Array =>
  Buffer.concat([
    ...name.split('.').map((label) => Buffer.concat([Uint8Array.of(label.length), Buffer.from(label, 'latin1')])),
    Uint8Array.of(0),
  ])

function textData(text: string): Uint8Array {
  const bytes = Buffer.from(text, 'latin1').subarray(0, MAX_TEXT_BYTES)
  return Buffer.concat([Uint8Array.of(bytes.length), bytes])
}

/** RFC 1035, 3.3.13. The last number is how long resolvers may remember that there is nothing: RFC 2308, 4. */
function startOfAuthority(nameServer: string): Uint8Array {
  const numbers = Buffer.alloc(20)
  for (const [index, value] of [SERIAL, REFRESH_SECS, RETRY_SECS, EXPIRE_SECS, TTL_SECS].entries())
    numbers.writeUInt32BE(value, 4 * index)
  return Buffer.concat([encodedName(nameServer), encodedName(`hostmaster.${nameServer}`), numbers])
}
