/**
 * Ports for servers whose address must be known before they listen.
 *
 * Each process that runs tests has a range of its own: on a busy machine a server takes seconds until it listens, and
 * nobody else takes its port meanwhile. The ranges are below the ports that systems give to outgoing
 * connections and to those who listen on port 0, so a port also stays free for a server that stops and starts again.
 */
import { createSocket } from 'node:dgram'
import { createServer, type Server } from 'node:net'

const LOWEST_PORT = 20_000
/** A port comes again after all the others, so that no client takes a new server for one that it knew. */
const RANGE_PORTS = 250
const RANGES = 48

let ownRange: Promise<number> | null = null
let given = 0

export const freePort = (): Promise<number> => nextPort(isFreeForTcp)

/** The same for UDP. */
export const freeUdpPort = (): Promise<number> => nextPort(isFreeForUdp)

/** The same for both, as name servers need it. */
export const freeDnsPort = (): Promise<number> =>
  nextPort(async (port) => (await isFreeForTcp(port)) && (await isFreeForUdp(port)))

async function nextPort(isFree: (port: number) => Promise<boolean>): Promise<number> {
  const first = await (ownRange ??= takeRange())
  for (let tries = 1; tries < RANGE_PORTS; tries++) {
    const port = first + 1 + (given++ % (RANGE_PORTS - 1))
    if (await isFree(port)) return port
  }
  throw new Error('no port is free')
}

/** Returns the first port of the range, on which this process listens until it ends: that is how others know. */
async function takeRange(): Promise<number> {
  const start = Math.floor(Math.random() * RANGES)
  for (let range = 0; range < RANGES; range++) {
    const first = LOWEST_PORT + ((start + range) % RANGES) * RANGE_PORTS
    const holder = await listening(first)
    if (holder === null) continue
    holder.unref()
    return first
  }
  throw new Error('other processes have all ranges of ports')
}

/** Null if the port is in use. */
function listening(port: number): Promise<Server | null> {
  const { promise, resolve } = Promise.withResolvers<Server | null>()
  const server = createServer()
  server.once('error', () => resolve(null))
  server.listen(port, '127.0.0.1', () => resolve(server))
  return promise
}

async function isFreeForTcp(port: number): Promise<boolean> {
  const probe = await listening(port)
  if (probe === null) return false
  await new Promise((resolve) => probe.close(resolve))
  return true
}

function isFreeForUdp(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const probe = createSocket('udp4')
  probe.once('error', () => resolve(false))
  probe.bind(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  return promise
}
