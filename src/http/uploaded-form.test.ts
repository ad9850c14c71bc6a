import { describe, expect, test } from 'bun:test'
import { RequestBody } from './body.ts'
import { withUpload } from './uploaded-form.ts'
import { errorOf, thrownBy } from '../../tests/support/thrown.ts'

const BOUNDARY = 'a-boundary'
const TYPE = `multipart/form-data; boundary=${BOUNDARY}`

/** A part of a form; with a name of a file, the file. */
const part = (name: string, content: string, fileName?: string) =>
  `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"${fileName === undefined ? '' : `; filename="${fileName}"`}\r\n${
    fileName === undefined ? '' : 'content-type: application/octet-stream\r\n'
  }\r\n${content}\r\n`
const END = `--${BOUNDARY}--\r\n`

const bodyOf = (chunks: Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>, type = TYPE) => {
  const encoder = new TextEncoder()
  const stream = new ReadableStream<Uint8Array>({
    async start(controller) {
      for await (const chunk of chunks) controller.enqueue(typeof chunk === 'string' ? encoder.encode(chunk) : chunk)
      controller.close()
    },
  })
  const request = new Request('http://localhost/', { method: 'POST', body: stream, headers: { 'content-type': type } })
  return new RequestBody(request)
}

const MAX_BYTES = 1024 ** 2

const read = (body: RequestBody, maxBytes = MAX_BYTES) =>
  withUpload(body, async ({ fields, file }) => ({
    fields: [...fields],
    file: file && Buffer.concat(await Array.fromAsync(file.stream(maxBytes))).toString(),
  }))

test('fields and a file arrive whole, however the form is cut into chunks', async () => {
  const form =
    part('account', 'did:web:ä.test') + part('form_token', 'x') + part('file', 'its\r\ncontent', 'a.zip') + END
  const whole = {
    fields: [
      ['account', 'did:web:ä.test'],
      ['form_token', 'x'],
    ],
    file: 'its\r\ncontent',
  }
  expect<unknown>(await read(bodyOf([form]))).toEqual(whole)
  expect<unknown>(
    await read(bodyOf(Array.from(new TextEncoder().encode(form), (byte) => new Uint8Array([byte])))),
  ).toEqual(whole)
})

test('a file that arrives in one piece with the end of its form is read', async () => {
  const content = 'x'.repeat(400_000)
  expect(await read(bodyOf([part('a', 'b') + part('file', content, 'a.zip') + END]))).toMatchObject({ file: content })
})

/** Bytes that no handler reads: a large unknown part, and data after the end. */
const UNREAD = `--${BOUNDARY}\r\n\r\n${'x'.repeat(300_000)}\r\n`
const AFTER = '-'.repeat(100_000)

test.each([
  ['a large part that is none of the form', UNREAD + END, null],
  ['such a part, and bytes after its end', UNREAD + END + AFTER, null],
  [
    'a file, such a part, and bytes after its end',
    part('file', 'its content', 'a.zip') + UNREAD + END + AFTER,
    'its content',
  ],
])('a form that arrives at once with %s ends', async (_, form, file) => {
  expect(await read(bodyOf([form]))).toMatchObject({ file })
})

test('a form in which no file was chosen has none', async () => {
  expect(await read(bodyOf([part('a', 'b'), part('file', '', ''), END]))).toMatchObject({ file: null })
  expect(await read(bodyOf([part('a', 'b'), END]))).toMatchObject({ file: null })
  expect(await read(bodyOf([part('file', '', 'empty.zip'), END]))).toMatchObject({ file: '' })
})

test('a file tells how it begins, and is read from its beginning all the same', async () => {
  const form = ['P', 'K', '\x03\x04 and more'].join('')
  const seen = await withUpload(bodyOf([part('file', form, 'a.zip'), END]), async ({ file }) => [
    await file!.beginsWith('PK\x03\x04'),
    await file!.beginsWith('PK\x05'),
    Buffer.concat(await Array.fromAsync(file!.stream(100))).toString(),
  ])
  expect(seen).toEqual([true, false, form])
})

describe('refused is a form', () => {
  const refused: Record<string, [() => RequestBody, number]> = {
    'that breaks off in its file': [() => bodyOf([part('a', 'b'), part('file', 'x', 'a.zip')]), 400],
    'that breaks off in its fields': [() => bodyOf([part('a', 'b').slice(0, 40)]), 400],
    'that is empty': [() => bodyOf([]), 400],
    'that is no form': [() => bodyOf(['there is nothing here']), 400],
    'of another kind': [() => bodyOf(['a=b'], 'application/x-www-form-urlencoded'), 415],
    'without a boundary': [() => bodyOf([END], 'multipart/form-data'), 400],
    'with two files': [() => bodyOf([part('file', 'x', 'a.zip'), part('file', 'y', 'b.zip'), END]), 400],
    'with a field after its file': [() => bodyOf([part('file', 'x', 'a.zip'), part('account', 'y'), END]), 400],
    'with too many fields': [() => bodyOf([...Array(33).fill(part('a', 'b')), END]), 400],
    'with a field that is too large': [() => bodyOf([part('a', 'b'.repeat(65_537)), END]), 413],
    'that has much before its first part': [() => bodyOf(Array(20).fill('x'.repeat(10_000))), 413],
    'whose file is larger than may be': [() => bodyOf([part('file', 'x'.repeat(MAX_BYTES + 1), 'a.zip'), END]), 413],
  }
  test.each(Object.keys(refused))('%s', async (what) => {
    const [make, status] = refused[what]!
    expect(await errorOf(read(make()))).toMatchObject({ status })
  })
})

test('of a file that nobody reads, no more is received than a buffer holds', async () => {
  let sent = 0
  const chunk = new Uint8Array(64 * 1024)
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (sent++ === 0) controller.enqueue(new TextEncoder().encode(part('file', '', 'a.zip').slice(0, -2)))
        else controller.enqueue(chunk)
      },
    },
    { highWaterMark: 0 },
  )
  const request = new Request('http://localhost/', { method: 'POST', body: stream, headers: { 'content-type': TYPE } })
  const refusal = withUpload(new RequestBody(request), async () => {
    throw new RangeError('not wanted')
  })
  expect(await thrownBy(refusal)).toThrow('not wanted')
  expect(sent).toBeLessThan(20)
})
