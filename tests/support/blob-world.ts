/** A server for blobs, what it has stored, and two people who upload. */
import { Uploader } from './clients/uploader.ts'
import type { ConfigOverrides } from './servers/config.ts'
import { setUp } from './set-up.ts'
import { Stored } from './stored-blobs.ts'
import { useWorld } from './world.ts'

/** See `useWorld`. `blobs` is that section of the configuration. */
export function useUploaders(blobs: ConfigOverrides['blobs'] = {}) {
  const { pds } = useWorld({ config: { blobs } })
  const [alice, bob] = ['alice', 'bob'].map((name) => setUp(() => Uploader.join(pds, name)))
  return { pds, stored: new Stored(pds), alice: alice!, bob: bob! }
}
