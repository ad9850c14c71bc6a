/**
 * The worker thread of `Checkpointer`. Each message is the path of a database to checkpoint, or null to close all
 * connections. The thread echoes the message when it is done.
 */
import { getPriority, setPriority } from 'node:os'
import { Database } from 'bun:sqlite'

declare const self: Worker

/** A checkpoint takes 50 ms of a processor. Where processors are few, requests go first. */
const NICENESS = 10

// On Linux, this is the priority of the thread. Elsewhere, it would be that of the whole process.
if (process.platform === 'linux' && getPriority() < NICENESS) setPriority(NICENESS)

const connections = new Map<string, Database>()

self.onmessage = ({ data: path }: MessageEvent<string | null>) => {
  if (path === null) {
    for (const connection of connections.values()) connection.close()
    connections.clear()
  } else {
    connectionTo(path).run('PRAGMA wal_checkpoint(PASSIVE)')
  }
  self.postMessage(path)
}

function connectionTo(path: string): Database {
  let connection = connections.get(path)
  if (!connection) {
    connection = new Database(path, { readwrite: true })
    connection.run('PRAGMA synchronous = FULL')
    connections.set(path, connection)
  }
  return connection
}
