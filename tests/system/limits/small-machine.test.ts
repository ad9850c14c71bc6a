/** The least machine that is supported: docs/performance.md, "The least machine". */
import { expect, test } from 'bun:test'
import { busyHour, MEMORY_BYTES } from '../../support/busy-machine.ts'

const REQUESTS = 2500

test('512 MB and one processor are enough for 1,000 people, 100 connections, 20 subscribers, uploads, exports and a backup', async () => {
  const { faults, kills, lacks, peakMiB, subscribersLeft, backup, millis, exports } = await busyHour(REQUESTS)
  expect({ faults: [...faults], kills, subscribersLeft, backup }).toEqual({
    faults: [],
    kills: 0,
    subscribersLeft: 20,
    backup: { code: 0, err: '' },
  })
  expect(millis.length).toBe(REQUESTS)
  expect(exports).toBeGreaterThan(0)
  // Where control groups cannot be made, what the server had resident has to do.
  if (lacks !== null) {
    console.warn(`the memory of the machine has no limit: ${lacks}`)
    expect(lacks).toMatch(/E[A-Z]+/)
    expect(peakMiB).toBeLessThan(MEMORY_BYTES / 1024 ** 2)
  }
})
