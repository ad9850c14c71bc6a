/** What the simulator takes for a promise. */
import { expect, test } from 'bun:test'
import { Ledger } from './ledger.ts'

const path = 'com.example.note/one'

function begun(ledger: Ledger, text: string, begunAt: number) {
  return ledger.begin({ did: 'did:web:a.test', path, text, begunAt, by: 'client 1' })
}

const faultOf = (ledger: Ledger, text: string | null, at: number) =>
  ledger.faultOf('did:web:a.test', path, text, at, at)

test('a write that was acknowledged has to be there', () => {
  const ledger = new Ledger(1)
  ledger.end(begun(ledger, 'first', 10), 'acknowledged', 20)
  expect(faultOf(ledger, 'first', 30)).toBeNull()
  expect(faultOf(ledger, null, 30)).toContain('nothing is there')
})

test('a write that is asked before a failover and acknowledged after it may be lost', () => {
  const ledger = new Ledger(1)
  const write = begun(ledger, 'first', 10)
  ledger.forgetPromises(5)
  ledger.end(write, 'acknowledged', 20)
  expect(faultOf(ledger, 'first', 30)).toBeNull()
  expect(faultOf(ledger, null, 30)).toBeNull()
})

test('a write that is asked after a failover has to be there', () => {
  const ledger = new Ledger(1)
  ledger.forgetPromises(5)
  ledger.end(begun(ledger, 'first', 10), 'acknowledged', 20)
  expect(faultOf(ledger, null, 30)).toContain('nothing is there')
})

test('a refusal is true across a failover', () => {
  const ledger = new Ledger(1)
  const write = begun(ledger, 'first', 10)
  ledger.forgetPromises(5)
  ledger.end(write, 'refused', 20)
  expect(faultOf(ledger, 'first', 30)).toContain('was told that this was not done')
})
