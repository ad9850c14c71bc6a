import { expect, test } from 'bun:test'
import { PAGE_BYTES, PageList, pagesIn } from './page-list.ts'

const page = (fill: number): Uint8Array => new Uint8Array(PAGE_BYTES).fill(fill)
const fills = (list: Uint8Array): Map<number, number> => {
  const found = new Map<number, number>()
  for (const { number, page: content } of pagesIn(list)) {
    expect(content.byteLength).toBe(PAGE_BYTES)
    expect(content.every((byte) => byte === content[0])).toBe(true)
    found.set(number, content[0]!)
  }
  return found
}

test('a list has the last content of each page, also in memory that another list has used', () => {
  let memory: Uint8Array<ArrayBuffer> | undefined
  for (const [round, count] of [0, 3, 16, 17, 200, 1, 90, 300].entries()) {
    const list = new PageList(memory)
    const expected = new Map<number, number>()
    for (let index = 0; index < count; index++) {
      const number = 1 + ((index * 7) % 211)
      const fill = (index + 31 * round) % 256
      list.set(number, page(fill))
      expected.set(number, fill)
    }
    expect(list.size).toBe(expected.size)
    expect(fills(list.bytes)).toEqual(expected)
    memory = new Uint8Array(list.bytes.buffer)
  }
})

test('what is set in one list changes nothing in another', () => {
  const one = new PageList()
  one.set(1, page(1))
  const taken = one.bytes
  const other = new PageList()
  for (let number = 1; number < 40; number++) other.set(number, page(2))
  expect(fills(taken)).toEqual(new Map([[1, 1]]))
})
