/** What a mail program shows of a message. */

export interface ReadMail {
  /** Lines of the header as they came, unfolded. */
  headers: readonly string[]
  subject: string
  text: string
}

/** Returns a message of one part of plain text, decoded. Throws if it is another. */
export function readMail(source: string): ReadMail {
  const end = source.indexOf('\r\n\r\n')
  const headers = source
    .slice(0, end)
    .replaceAll(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
  const of = (name: string): string => {
    const found = headers.filter((line) => line.toLowerCase().startsWith(`${name}: `))
    if (found.length !== 1) throw new Error(`the message has ${found.length} headers ${name}`)
    return found[0]!.slice(name.length + 2)
  }
  if (of('content-type') !== 'text/plain; charset=utf-8') throw new Error(`the message is ${of('content-type')}`)
  const body = source.slice(end + 4)
  const bytes = decoders[of('content-transfer-encoding')]?.(body)
  if (bytes === undefined) throw new Error(`the encoding is ${of('content-transfer-encoding')}`)
  return { headers, subject: words(of('subject')), text: utf8(bytes).replaceAll('\r\n', '\n') }
}

const utf8 = (bytes: Uint8Array): string => new TextDecoder('utf-8', { fatal: true }).decode(bytes)

const unquoted = (text: string): Buffer =>
  Buffer.from(
    text.replaceAll(/=([0-9A-F]{2})/g, (_all, hex: string) => String.fromCharCode(parseInt(hex, 16))),
    'latin1',
  )

const decoders: Readonly<Record<string, (body: string) => Buffer>> = {
  base64: (body) => Buffer.from(body, 'base64'),
  'quoted-printable': (body) => unquoted(body.replaceAll('=\r\n', '')),
  '7bit': (body) => Buffer.from(body),
}

/** Decodes the encoded words of a header (RFC 2047), each of which must be whole characters. */
const words = (header: string): string =>
  header
    .replaceAll(/(\?=)\s+(?==\?)/g, '$1')
    .replaceAll(/=\?utf-8\?([BQ])\?([^?\s]+)\?=/gi, (_all, kind: string, text: string) =>
      utf8(kind.toUpperCase() === 'B' ? Buffer.from(text, 'base64') : unquoted(text.replaceAll('_', ' '))),
    )
