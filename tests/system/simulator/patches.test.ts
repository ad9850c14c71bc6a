/** Known faults can be put back: a simulator that cannot is not tested for blindness any more. */
import { expect, test } from 'bun:test'
import { knownFaults } from './patches.ts'

const ROOT = new URL('../../../', import.meta.url).pathname

test.each(Object.entries(knownFaults))('the source has what the fault %s replaces, exactly once', async (_, fault) => {
  for (const { path, find } of fault.patches) {
    const text = await Bun.file(ROOT + path).text()
    expect({ path, find, count: text.split(find).length - 1 }).toEqual({ path, find, count: 1 })
  }
})
