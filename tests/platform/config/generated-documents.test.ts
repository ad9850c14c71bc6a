import { basename } from 'node:path'
import { expect, test } from 'bun:test'
import { generatedDocuments } from '../../../src/docs.ts'

test.each(generatedDocuments().map((document) => ({ ...document, name: basename(document.path) })))(
  '$name lists what is declared ("bun run docs" writes it)',
  ({ text, generated }) => expect(text).toBe(generated),
)
