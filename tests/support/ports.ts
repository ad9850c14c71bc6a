import { createSocket } from 'node:dgram'
import { createServer, type AddressInfo } from 'node:net'

/** A port that was free a moment ago: the public address must be known before the server listens. */
export function freePort(): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const probe = createServer()
  probe.once('error', reject)
  probe.listen(0, '127.0.0.1', () => {
    const { port } = probe.address() as AddressInfo
    probe.close(() => resolve(port))
  })
  return promise
}

/** The same for UDP. */
export function freeUdpPort(): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const probe = createSocket('udp4')
  probe.once('error', reject)
  probe.bind(0, '127.0.0.1', () => {
    const { port } = probe.address()
    probe.close(() => resolve(port))
  })
  return promise
}

const MAX_TRIES = 50
/** Below the ports that systems give to outgoing connections, which would take one until the server listens. */
const LOWEST_DNS_PORT = 20_000
const DNS_PORTS = 10_000

/** The same for both, as name servers need it. */
export async function freeDnsPort(): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const port = LOWEST_DNS_PORT + Math.floor(Math.random() * DNS_PORTS)
    if ((await isFreeForTcp(port)) && (await isFreeForUdp(port))) return port
  }
  throw new Error('no port is free for both UDP and TCP')
}

function isFreeForTcp(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const probe = createServer()
  probe.once('error', () => resolve(false))
  probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  return promise
}

function isFreeForUdp(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const probe = createSocket('udp4')
  probe.once('error', () => resolve(false))
  probe.bind(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  return promise
}
