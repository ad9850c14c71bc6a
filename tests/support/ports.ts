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
