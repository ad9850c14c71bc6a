/**
 * Answers DNS-01 challenges. The responder is open while an order has records, on every node of a cluster, because
 * resolvers may ask any of them.
 */
import { networkInterfaces } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../../../platform/configuration/config.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { AcmeFault } from '../../../platform/network/acme-client.ts'
import type { DnsResponder } from '../../../platform/network/dns-responder.ts'
import { listenFault } from '../../../platform/files/system-faults.ts'
import { SingleFlight } from '../../../base/single-flight.ts'
import {
  deleteOldChallengeRecords,
  insertChallengeRecord,
  listChallengeRecords,
  type ChallengeRecord,
} from './challenge-record-store.ts'

/** Most records that are published at a time. Each order has at most two. */
const MAX_RECORDS = 100
/** Most addresses of this machine at which the responder listens. */
const MAX_ADDRESSES = 16
/** Until the other nodes of a cluster have read new records, for which they look every three seconds. */
const SPREAD_MILLIS = 6000

interface State {
  responder: DnsResponder | null
  readonly changes: SingleFlight<'records', void>
}

const stateOf = perContext((): State => ({ responder: null, changes: new SingleFlight() }))

/**
 * Publish records for an order. Resolves once every node answers with them. Throws `AcmeFault` if the responder cannot
 * be opened here.
 */
export async function publishRecords(
  ctx: Context,
  records: readonly ChallengeRecord[],
  signal: AbortSignal,
): Promise<void> {
  for (const record of records) await insertChallengeRecord(ctx.db, record)
  try {
    await showRecords(ctx)
  } catch (error) {
    throw new AcmeFault('unavailable', (error as Error).message, '', null, { cause: error })
  }
  if (await hasOtherNodes(ctx)) await pause(SPREAD_MILLIS, undefined, { signal })
}

/** Whether resolvers may ask another node than this one. */
async function hasOtherNodes({ db: { cluster } }: Pick<Context, 'db'>): Promise<boolean> {
  if (cluster === null) return false
  return (await cluster.nodes()).some(({ id, isAlive }) => isAlive && id !== cluster.node.id)
}

/** Delete the records of orders that have ended. Closes the responder if none are left. */
export async function withdrawRecords(ctx: Context): Promise<void> {
  await deleteOldChallengeRecords(ctx.db)
  await showRecords(ctx)
}

/** Answer with the stored records. Throws an error for the operator, from `listenFault`. */
export function showRecords(ctx: Context): Promise<void> {
  const state = stateOf(ctx)
  return state.changes.runAnew('records', async () => {
    const rows = await listChallengeRecords(ctx.db, MAX_RECORDS)
    const records = new Map(
      [...Map.groupBy(rows, ({ recordName }) => recordName)].map(([name, all]) => [
        name,
        all.map(({ value }) => value),
      ]),
    )
    if (records.size === 0) return hide(state)
    const zones = { records, nameServer: new URL(ctx.config.publicUrl).hostname }
    if (state.responder === null) state.responder = await open(ctx.config, zones)
    else state.responder.zones = zones
  })
}

/** Close the responder. */
export const hideRecords = (ctx: Context): Promise<void> => {
  const state = stateOf(ctx)
  return state.changes.runAnew('records', () => hide(state))
}

async function hide(state: State): Promise<void> {
  const { responder } = state
  state.responder = null
  await responder?.close()
}

/** Open the responder and close it again, so that the start reports what would prevent it later. */
export async function rehearseResponder({ config }: Context): Promise<void> {
  await (await open(config, { records: new Map(), nameServer: 'localhost' })).close()
}

async function open(config: Config, zones: DnsResponder['zones']): Promise<DnsResponder> {
  const { openDnsResponder } = await import('../../../platform/network/dns-responder.ts')
  const addresses = responderAddresses(config)
  try {
    return await openDnsResponder({ addresses, port: config.tls.dnsPort }, zones)
  } catch (error) {
    throw listenFault(error, { bindAddress: addresses.join(' and '), port: config.tls.dnsPort, key: 'tls.dns_port' })
  }
}

export interface ResponderPlace {
  bindAddress: string
  tls: { readonly dnsAddress: string | null }
}

/**
 * Returns the configured address. If that means all addresses, returns each one that others can reach, because
 * resolvers of the machine itself often occupy port 53 of a loopback address.
 */
export function responderAddresses({ bindAddress, tls }: ResponderPlace): string[] {
  const address = tls.dnsAddress ?? bindAddress
  if (address !== '0.0.0.0' && address !== '::') return [address]
  const found = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  const reachable = found.filter(
    ({ internal, family, address: one }) =>
      !internal && !/^fe80:/i.test(one) && (family === 'IPv4' || address === '::'),
  )
  return reachable.length === 0 ? [address] : reachable.slice(0, MAX_ADDRESSES).map(({ address: one }) => one)
}
