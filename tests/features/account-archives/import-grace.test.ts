/** What an import finds here is kept until the repository refers to it, however long the rest of the archive takes. */
import { expect, test } from 'bun:test'
import { Secret } from '../../../src/base/secret.ts'
import { cidOfBlobDigest } from '../../../src/protocol/cid.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { SERVED, Uploader } from '../../support/clients/uploader.ts'
import { TestClock } from '../../support/clock.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const GRACE_SECS = 1000
const PATH = '/v1/account/archive'

const clock = new TestClock()
const { pds, other } = useWorld({
  other: true,
  options: { clock },
  config: ({ other }) => ({
    rateLimit: { enabled: false },
    blobs: { tempTtlSecs: GRACE_SECS },
    blobHook: { url: `${other.url}/xrpc/hook`, secret: new Secret(`whsec_${Buffer.alloc(32, 7).toString('base64')}`) },
  }),
})
const alice = setUp(() => Uploader.join(pds, 'alice'))

const cidOf = (text: string) => cidOfBlobDigest(new Bun.CryptoHasher('sha256').update(text).digest()).toString()

test('a blob that no record refers to does not end while its archive is imported', async () => {
  other.answer('hook', () => Response.json({ decision: 'allow' }))
  // In the order of the archive.
  const [here, gone] = ['one', 'two'].toSorted((a, b) => (cidOf(a) < cidOf(b) ? -1 : 1)) as [string, string]
  await alice.refer('a.b.c/here', await alice.upload(here))
  await alice.refer('a.b.c/gone', await alice.upload(gone))
  const archive = await (await fetch(pds.url + PATH, { headers: bearer(alice.token) })).arrayBuffer()
  await alice.refer('a.b.c/gone')
  clock.advance({ secs: GRACE_SECS / 2 })
  await alice.refer('a.b.c/here')
  clock.advance({ secs: GRACE_SECS - 1 })
  await pds.runSweep('blob-gc')

  // The check of the second blob takes its time.
  other.answer('hook', async () => {
    clock.advance({ secs: 2 })
    await pds.runSweep('blob-gc')
    return Response.json({ decision: 'allow' })
  })
  const { status, body } = await request(pds.url + PATH, {
    method: 'POST',
    headers: bearer(alice.token),
    body: archive,
  })
  expect({ status, body }).toMatchObject({ status: 200, body: { blobs: { stored: 1, present: 1 } } })
  expect([await alice.sees(cidOf(here)), await alice.sees(cidOf(gone))]).toEqual([SERVED, SERVED])
})
