import { expect, test } from 'bun:test'
import { mimeTypeOf } from './mime-type.ts'

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)

test.each([
  ['bytes outweigh the sender', png, 'text/plain', 'image/png'],
  [
    'text never outweighs the sender',
    Buffer.from('<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>'),
    'image/svg+xml',
    'image/svg+xml',
  ],
  ['subtitles stay what they are called', Buffer.from('WEBVTT\n\n'), 'text/vtt', 'text/vtt'],
  ['what nobody knows is bytes', Buffer.from('hello'), null, 'application/octet-stream'],
  ['nothing at all is what its sender says', Buffer.alloc(0), 'image/gif', 'image/gif'],
  ['a truncated head is no fault', png.subarray(0, 20), 'image/png', 'image/png'],
])('%s', async (_, bytes, declared, expected) => {
  expect(await mimeTypeOf(bytes, declared)).toBe(expected)
})
