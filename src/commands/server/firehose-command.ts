import { type Data, decodeFirst } from '../../protocol/cbor.ts'
import { OperatorError } from '../../base/operator-error.ts'
import { dataToJson } from '../../protocol/data-model.ts'
import { type Command, exitCodes, type ExitCode, integerOption, Misuse, type Terminal } from '../command.ts'

export const firehoseCommand: Command = {
  summary: 'Print the events of a server as they happen.',
  details: `Follows com.atproto.sync.subscribeRepos and prints one line per event, until it is interrupted, its output is
closed or the server closes the connection. Without a URL, follows the server of "dev".`,
  parameters: ['[URL]'],
  options: {
    cursor: { value: 'SEQ', doc: 'Start after the event with this number. 0 starts at the oldest event in the log.' },
  },
  async run({ terminal, positionals, options }) {
    const base = URL.parse(positionals[0] ?? 'http://localhost:2583')
    if (base === null) throw new Misuse(`${positionals[0]} is not a URL`)
    const address = new URL('/xrpc/com.atproto.sync.subscribeRepos', base)
    address.protocol = base.protocol === 'https:' ? 'wss:' : 'ws:'
    const cursor = integerOption(options, 'cursor', 0)
    if (cursor !== undefined) address.searchParams.set('cursor', String(cursor))
    return follow(address, terminal)
  },
}

function follow(address: URL, terminal: Terminal): Promise<ExitCode> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(address)
    socket.binaryType = 'arraybuffer'
    socket.addEventListener('message', ({ data }) => terminal.out(describeFrame(new Uint8Array(data as ArrayBuffer))))
    socket.addEventListener('error', () => reject(new OperatorError(`${address.href} cannot be read`)))
    const onClose = ({ code }: CloseEvent) => {
      terminal.err(`closed by the server (${code})`)
      resolve(exitCodes.ok)
    }
    socket.addEventListener('close', onClose)
    void terminal.outputClosed().then(() => {
      socket.removeEventListener('close', onClose)
      socket.terminate()
      resolve(exitCodes.ok)
    })
  })
}

/** Describe an event frame in one line: its type, fields and operations, without the blocks. */
function describeFrame(frame: Uint8Array): string {
  const { value: header, rest } = decodeFirst(frame)
  const { value: body } = decodeFirst(rest)
  const { t: kind = 'error' } = header as { t?: Data }
  const {
    blocks: _,
    ops,
    ...fields
  } = dataToJson(body) as Record<string, unknown> & { ops?: { action: string; path: string }[] }
  const words = Object.entries(fields).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  return [kind, ...words, ...(ops ?? []).map(({ action, path }) => `${action} ${path}`)].join(' ')
}
