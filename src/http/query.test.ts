import { expect, test } from 'bun:test'
import { queryOf } from './query.ts'

const queries = [
  '',
  '?',
  '?a=1',
  '?a=1&a=2&b=',
  '?a&=b&&c==d=&',
  '?did=did%3Aplc%3Aabc&q=a+b%20c%2B&%61=%C3%A4',
  '?bad=%&worse=%zz&half=%C3&mixed=%C3%A4%FF+x&long=%e2%82%ac',
  "?text=ä€😀&plain=~!*()'_-.",
  '?a=1?b=2/c',
  '?a=1#b=2',
]

test.each(queries)('%p is read as the platform reads it', (query) => {
  const url = `http://pds.example/xrpc/some.method${query}`
  expect(queryOf(url)).toEqual([...new URLSearchParams(query.split('#')[0])])
})
