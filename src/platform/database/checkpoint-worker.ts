/**
 * The thread of `Checkpointer`. A path asks for a checkpoint of that database, null for the end; each message is echoed
 * when done.
 */
import { Database } from 'bun:sqlite'

declare const self: Worker

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
