/** Servers that send pushes through a relay. */
import { peersOf } from '../../../src/features/push/iroh/iroh.ts'
import { MASTER_KEY, type ConfigOverrides } from './config.ts'
import { startPds, type TestPds } from './pds.ts'
import type { PushRelay } from './push-relay.ts'

/** A server that sends pushes through the relay, where it has enrolled. */
export async function startWith(
  relay: PushRelay,
  config: ConfigOverrides = {},
  options: Parameters<typeof startPds>[1] = {},
): Promise<TestPds> {
  const pds = await startStranger(relay, config, options)
  relay.enrolled.add(peersOf(pds.ctx)!.nodeId)
  return pds
}

/** A server that is about to send pushes through the relay. */
export const startStranger = (
  relay: PushRelay,
  config: ConfigOverrides = {},
  options: Parameters<typeof startPds>[1] = {},
): Promise<TestPds> =>
  startPds({ ...relay.config, signingKeyMasterKey: MASTER_KEY, rateLimit: { enabled: false }, ...config }, options)
