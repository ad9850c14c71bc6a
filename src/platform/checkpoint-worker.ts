/** The thread of `Checkpointer`: each message names a database whose log is to be copied into it. */
import { Database } from 'bun:sqlite'

declare const self: Worker

const connections = new Map<string, Database>()

self.onmessage = ({ data: path }: MessageEvent<string>) => {
  let connection = connections.get(path)
  if (!connection) {
    connection = new Database(path, { readwrite: true })
    connection.run('PRAGMA synchronous = FULL')
    connections.set(path, connection)
  }
  connection.run('PRAGMA wal_checkpoint(PASSIVE)')
  self.postMessage(path)
}
