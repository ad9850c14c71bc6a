import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { parseCid } from './cid.ts'
import { parseAtUri, parseDid, parseHandle, parseNsid, parseRecordKey, parseTid } from './identifiers.ts'

const lines = (file: string): string[] =>
  readFileSync(`${import.meta.dir}/../../tests/vectors/interop/syntax/${file}.txt`, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))

const grammars = {
  did: parseDid,
  handle: parseHandle,
  nsid: parseNsid,
  tid: parseTid,
  recordkey: parseRecordKey,
  aturi: parseAtUri,
}

describe.each(Object.entries(grammars))('interop vectors of %s', (name, parse) => {
  test('valid ones are taken', () => {
    for (const text of lines(`${name}_syntax_valid`))
      expect([text, parse(text)]).toEqual([text, name === 'handle' ? text.toLowerCase() : text])
  })
  test('invalid ones are refused', () => {
    for (const text of lines(`${name}_syntax_invalid`)) expect([text, parse(text)]).toEqual([text, null])
  })
})

test('invalid CIDs are refused; of the valid syntaxes only the blessed kind is taken, and no vector is of it', () => {
  for (const text of [...lines('cid_syntax_invalid'), ...lines('cid_syntax_valid')])
    expect([text, parseCid(text)]).toEqual([text, null])
})
