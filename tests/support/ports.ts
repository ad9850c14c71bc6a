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

const MAX_TRIES = 20

/** The same for both, as name servers need it. */
export async function freeDnsPort(): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const port = await freeUdpPort()
    const probe = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(false))
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
    })
    if (isFree) return port
  }
  throw new Error('no port is free for both UDP and TCP')
}
