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
const LOWEST_PORT = 20_000
const PORTS = 10_000

/** The same for both, as name servers need it. */
export const freeDnsPort = (): Promise<number> =>
  lowPort(async (port) => (await isFreeForTcp(port)) && (await isFreeForUdp(port)))

/** A port that no outgoing connection takes, for a server that stops and starts again. */
export const lastingPort = (): Promise<number> => lowPort(isFreeForTcp)

async function lowPort(isFree: (port: number) => Promise<boolean>): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const port = LOWEST_PORT + Math.floor(Math.random() * PORTS)
    if (await isFree(port)) return port
  }
  throw new Error('no port is free')
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
