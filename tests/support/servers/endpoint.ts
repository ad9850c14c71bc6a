/** The endpoint of a server under test, as operators and peers see it. */
import type { BiStream, Connection } from '@number0/iroh'
import { operate } from '../clients/ceremony.ts'
import { MASTER_KEY } from './config.ts'
import type { TestPds } from './pds.ts'

export const ECHO = 'ezpds/iroh/0'

/** Configuration of a server with an endpoint on loopback, which nobody else is told about. */
export const withEndpoint = { iroh: { enabled: true, discovery: false }, signingKeyMasterKey: MASTER_KEY }

/** The member `iroh` of the health report. */
export const endpointStatus = async (pds: Pick<TestPds, 'url'>) => (await operate(pds, '/v1/admin/health')).body.iroh

export async function addressOf(pds: Pick<TestPds, 'url'>): Promise<{ nodeId: string; addresses: string[] }> {
  const { nodeId, sockets } = await endpointStatus(pds)
  return { nodeId, addresses: sockets }
}

/** Sends bytes on a new stream and ends it. Returns what comes back. */
export async function echoed(connection: Connection, bytes: Uint8Array): Promise<Uint8Array> {
  const { send, recv } = await opened(connection, bytes)
  await send.finish()
  return Uint8Array.from(await recv.readToEnd(1024 * 1024))
}

/** Streams that are left open. The library would finish one that nothing refers to any more. */
const leftOpen: BiStream[] = []

/** Opens a stream and sends bytes, but does not end it. */
export async function opened(connection: Connection, bytes: Uint8Array): Promise<BiStream> {
  const stream = await connection.openBi()
  leftOpen.push(stream)
  await stream.send.writeAll([...bytes])
  return stream
}

/** How a stream ended for its sender: null if it was not refused. */
export const refusalOf = (stream: BiStream): Promise<number | null> => stream.recv.receivedReset()
