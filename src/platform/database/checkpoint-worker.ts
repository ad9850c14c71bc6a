/**
 * The thread of `Checkpointer`. A path asks for a checkpoint of that database, null for the end; each message is echoed
 * when done.
 */
import { getPriority, setPriority } from 'node:os'
import { Database } from 'bun:sqlite'

declare const self: Worker

/** Where processors are few, a checkpoint takes 50 ms of one: requests go first. */
const NICENESS = 10

// Elsewhere, it would be that of the whole process.
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
