import { describe, expect, test } from 'bun:test'
import { byPair, bySeq, nextCursor, pageOf, type Pages } from './paged-list.ts'
import { thrownBy } from '../../tests/support/thrown.ts'

const letters = 'abcdefghij'.split('').map((name, i) => ({ name, rank: i + 1 }))
type Letter = (typeof letters)[number]

const pages: Pages<Letter> = { cursor: byPair('rank', '|', 'name'), maxRows: 4, usualRows: 3 }
const read = async (after: Letter | null, limit: number) =>
  letters.filter(({ rank }) => rank > (after?.rank ?? 0)).slice(0, limit)
const page = async (query: string, of: Pages<Letter> = pages) => {
  const { rows, cursor } = await pageOf(new URLSearchParams(query), of, read)
  return { names: rows.map(({ name }) => name).join(''), cursor }
}

describe('a page of a list', () => {
  test('continues at the cursor of the page before, and the last one has no cursor', async () => {
    expect(await page('')).toEqual({ names: 'abc', cursor: '3|c' })
    expect(await page('cursor=')).toEqual({ names: 'abc', cursor: '3|c' })
    expect(await page('cursor=3%7Cc&limit=4')).toEqual({ names: 'defg', cursor: '7|g' })
    expect(await page('cursor=7%7Cg&limit=4')).toEqual({ names: 'hij', cursor: undefined })
  })

  test('has at most as many rows as the list allows, and at least one', async () => {
    expect((await page('limit=1000')).names).toBe('abcd')
    expect((await page('limit=-3')).names).toBe('a')
  })

  test('is refused for a limit beyond the bounds if the list is strict', async () => {
    for (const limit of ['0', '5', '-1'])
      expect(await thrownBy(page(`limit=${limit}`, { ...pages, isStrict: true }))).toThrow('limit must be from 1 to 4')
    expect((await page('limit=4', { ...pages, isStrict: true })).names).toBe('abcd')
  })

  test('is refused for a limit that is no number', async () => {
    expect(await thrownBy(page('limit=many'))).toThrow('limit must be an integer')
  })
})

describe('a cursor', () => {
  test('of a number and a text keeps what the text contains of the separator', () => {
    const cursor = byPair<Letter>('rank', '::', 'name')
    expect(cursor.write({ rank: 7, name: 'a::b' })).toBe('7::a::b')
    expect(cursor.read('7::a::b')).toEqual({ rank: 7, name: 'a::b' })
  })

  test.each(['', '7', '7::', '::a', 'x::a', '-1::a', '1234567890123456::a', '7|a'])('%p is malformed', (text) => {
    expect(() => byPair<Letter>('rank', '::', 'name').read(text)).toThrow('Malformed cursor')
  })

  test('may have to begin its text as every such text does', () => {
    const cursor = byPair<Letter>('rank', '::', 'name', 'did:')
    expect(cursor.read('7::did:x')).toEqual({ rank: 7, name: 'did:x' })
    for (const text of ['7::did:', '7::x']) expect(() => cursor.read(text)).toThrow('Malformed cursor')
  })

  test('of a number alone is that number', () => {
    expect(bySeq.write({ seq: 12 })).toBe('12')
    expect(bySeq.read('12')).toEqual({ seq: 12 })
    for (const text of ['', '-1', '1.5', 'x', '1234567890123456']) expect(() => bySeq.read(text)).toThrow('Malformed')
  })

  test('of the next page is that of the last row of a full one', () => {
    expect(nextCursor(bySeq, [{ seq: 3 }, { seq: 2 }], 2)).toBe('2')
    expect(nextCursor(bySeq, [{ seq: 3 }], 2)).toBeUndefined()
    expect(nextCursor(bySeq, [], 2)).toBeUndefined()
  })
})
