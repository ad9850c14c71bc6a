/** Whether an address is on the waiting list is told by nothing, the time of the answer included. */
import { Database as Connection } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { request } from '../../support/clients/http.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'

test('an address that is listed is written to the disk as one that is not: the answer takes as long', async () => {
  await using pds = await startPdsOnFile({ waitlist: { enabled: true } })
  const log = new Connection(join(pds.dataDir, 'holdfast.db'), { readonly: true })
  const frames = () => log.query<{ log: number }, []>('PRAGMA wal_checkpoint(NOOP)').get()!.log
  const written: boolean[] = []
  for (let time = 0; time < 3; time++) {
    const before = frames()
    const json = { email: 'ann@example.org', handle: `ann${time}.test` }
    expect((await request(`${pds.url}/waitlist`, { json })).status).toBe(200)
    written.push(frames() > before)
  }
  log.close()
  expect(written).toEqual([true, true, true])
})
