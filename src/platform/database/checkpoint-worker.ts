/** The thread of `Checkpointer`: a path asks for the log of that database to be copied into it, null for the end. Each is answered. */
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
