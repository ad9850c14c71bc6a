/**
 * The endpoint of this server for QUIC between peers: its identity, and how other features reach their peers through
 * it.
 */
import { randomBytes } from 'node:crypto'
import { networkInterfaces } from 'node:os'
import { inWords } from '../../../base/operator-error.ts'
import type { Feature } from '../../../http/feature.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { IrohEndpoint } from '../../../platform/network/iroh-endpoint.ts'
import type { Peers } from '../../../platform/network/peers.ts'
import { SecretDoesNotOpen, serverSecret } from '../../../platform/secrets/vault.ts'
import { ECHO_ALPN, emptyTally, livenessEcho, type EchoTally } from './liveness-echo.ts'
import { ENDPOINT_LEASE, shareEndpoint } from './shared-endpoint.ts'

const SECRET_NAME = 'iroh-endpoint'

interface State {
  /** Null if there is no endpoint, and for commands, which open none. */
  nodeId: string | null
  /** Null as well while another server of a cluster has the endpoint. */
  endpoint: IrohEndpoint | null
  tally: EchoTally
}

const stateOf = perContext((): State => ({ nodeId: null, endpoint: null, tally: emptyTally() }))

/**
 * Returns null if the server has no endpoint, for commands, which open none, and while another server of a cluster has
 * the endpoint.
 */
export const peersOf = (ctx: Context): Peers | null => stateOf(ctx).endpoint

/** Whether another server of the cluster has the endpoint, or is about to. */
export const isEndpointElsewhere = (ctx: Context): boolean => stateOf(ctx).nodeId !== null && peersOf(ctx) === null

/**
 * Whether some server of a cluster should have this lease. The lease of the endpoint exists even after the endpoint was
 * switched off.
 */
export const isLeaseInUse = ({ iroh: { enabled } }: Config, lease: string): boolean =>
  enabled || lease !== ENDPOINT_LEASE

/** Returns the node id by which others should know this server, or null if there is none. */
export const advertisedNodeId = (ctx: Context): string | null => ctx.config.iroh.endpoint ?? stateOf(ctx).nodeId

/** The state of the endpoint, for operators. */
export interface IrohStatus {
  nodeId: string
  /**
   * False on a cluster while another server has the endpoint. All other fields are about this server, and then empty.
   */
  isHere: boolean
  /** The open sockets, each `address:port`. */
  sockets: readonly string[]
  /** Connections that peers have opened. */
  openConnections: number
  /** Since the start, like all fields below. */
  echoesServed: number
  /** Streams that exceeded a bound. */
  echoesRefused: number
  connectionsRefused: number
}

/** Returns null if there is no endpoint. */
export function irohStatus(ctx: Context): IrohStatus | null {
  const { nodeId, endpoint, tally } = stateOf(ctx)
  return nodeId === null
    ? null
    : {
        nodeId,
        isHere: endpoint !== null,
        sockets: endpoint?.sockets ?? [],
        openConnections: endpoint?.connections ?? 0,
        echoesServed: tally.streams.served,
        echoesRefused: tally.streams.refused,
        connectionsRefused: tally.connections.refused,
      }
}

export const iroh: Feature = {
  name: 'iroh',
  enabled: ({ config }) => config.iroh.enabled,
  async prepare(ctx) {
    ctx.metrics.gauge(
      'iroh_connections',
      'Connections of peers over QUIC that are open',
      () => stateOf(ctx).endpoint?.connections ?? null,
    )
    const { nodeIdOf, openEndpoint } = await import('../../../platform/network/iroh-endpoint.ts')
    const state = stateOf(ctx)
    const own = await endpointSecret(ctx)
    const open = (secret: Uint8Array, discovery: boolean) =>
      openEndpoint({
        secret,
        discovery,
        sockets: socketsOf(ctx.config),
        alpn: ECHO_ALPN,
        service: livenessEcho(ctx, state.tally),
      })
    const hold = (endpoint: IrohEndpoint | null) => {
      state.endpoint = endpoint
      if (endpoint === null) return
      ctx.log.info('reachable over QUIC', { nodeId: endpoint.nodeId })
      ctx.steps.wake()
    }
    state.nodeId = nodeIdOf(own)
    const { config, db, log } = ctx
    const openOwn = () => open(own, config.iroh.discovery)
    if (db.cluster !== null) {
      const rehearse = async () => (await open(randomBytes(32), false)).close()
      return shareEndpoint({ cluster: db.cluster, log, open: openOwn, rehearse, hold })
    }
    const endpoint = await openOwn()
    hold(endpoint)
    return () => endpoint.close()
  },
}

/**
 * Returns the seed of the endpoint's key. Throws `OperatorError` if the stored seed cannot be decrypted: relays know
 * this server by its key, so the key must never be replaced silently.
 */
async function endpointSecret({ config, db, vault, log }: Context): Promise<Uint8Array> {
  if (config.signingKeyMasterKey === null) {
    log.warn(
      'no master key is configured: the node id changes with every start, so relays will not recognise this server',
    )
    return randomBytes(32)
  }
  try {
    return await serverSecret(db, vault, SECRET_NAME)
  } catch (error) {
    if (!(error instanceof SecretDoesNotOpen)) throw error
    const what = `the stored key of the QUIC endpoint (row ${SECRET_NAME} of server_secret) does not open`
    throw inWords(
      { what, remedy: 'restore it from a backup; with another key this server would have another node id' },
      error,
    )
  }
}

/**
 * Without discovery, peers must know an address anyway, so a server that serves only this machine opens sockets only
 * there.
 */
function socketsOf({ iroh: { discovery, ipv6 }, bindAddress }: Config): readonly string[] {
  if (!discovery && isLoopback(bindAddress)) return ['127.0.0.1:0', ...loopbackOnly()]
  // The library always opens a socket for IPv6. It tolerates that there is no IPv6 only if no address is given.
  return ipv6 ? [] : ['0.0.0.0:0', ...loopbackOnly()]
}

const isLoopback = (address: string): boolean => address === '::1' || address.startsWith('127.')

/**
 * A loopback address that replaces the IPv6 socket which the library would open on all interfaces. None if the machine
 * has no IPv6.
 */
const loopbackOnly = (): readonly string[] =>
  Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === '::1'))
    ? ['[::1]:0']
    : []
