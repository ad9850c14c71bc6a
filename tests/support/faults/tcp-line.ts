/** A line to a server of this machine that is cut, or carries nothing, as a test says. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

export interface TcpLine extends AsyncDisposable {
  /** As the given one, over this line. */
  readonly url: string
  /** `cut`: connections are closed, and new ones too. `silent`: they carry nothing. */
  state: 'open' | 'cut' | 'silent'
}

export async function startTcpLine(to: string): Promise<TcpLine> {
  const target = new URL(to)
  const sockets = new Set<Socket>()
  let state: TcpLine['state'] = 'open'
  const server = createServer({ noDelay: true }, (client) => {
    if (state === 'cut') return void client.destroy()
    const upstream = connect({ host: target.hostname, port: Number(target.port), noDelay: true })
    for (const [from, into] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from)
      from.on('data', (bytes: Buffer) => void (state === 'open' && into.write(bytes)))
      from.on('error', () => into.destroy())
      from.on('close', () => {
        sockets.delete(from)
        into.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const closeAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  const url = new URL(to)
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href.replace(/\/$/, ''),
    get state() {
      return state
    },
    set state(next) {
      // What was sent into silence is lost.
      if (state === 'silent' || next === 'cut') closeAll()
      state = next
    },
    async [Symbol.asyncDispose]() {
      closeAll()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
