/** A line to a PostgreSQL server that is cut, or stops carrying anything, as a test says. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** Looks at what a client sends, and whether a COMMIT is among it, and says what becomes of it. */
export type Watch = (bytes: Buffer, commits: boolean) => 'pass' | 'lose' | 'lose the answer' | 'hold'

export interface DatabaseLine extends AsyncDisposable {
  /** As the given one, over this line. */
  readonly databaseUrl: string
  watch: Watch
  /** What it has carried. A round trip begins with what is sent after an answer. */
  readonly carried: { roundTrips: number; bytes: number }
  /** Close all connections. */
  cut(): void
  /** Carry nothing any more, without closing anything, until told otherwise. New connections are carried. */
  freeze(): void
  /** The same for the connections that listen for notifications. Returns how many there are. */
  freezeListeners(): number
  /** The same for new connections, until `speak`, which carries those that are opened from then on. */
  silence(): void
  speak(): void
  /** Carry new connections to another server. */
  leadTo(databaseUrl: string): void
  /** Deliver to the server what was held, whose client is long gone. */
  deliver(): void
}

export async function startDatabaseLine(databaseUrl: string): Promise<DatabaseLine> {
  const url = new URL(databaseUrl)
  let target = { host: url.hostname, port: Number(url.port) }
  let isSilent = false
  const pairs = new Set<Pair>()
  const held: { to: Socket; bytes: Buffer }[] = []
  const carried = { roundTrips: 0, bytes: 0 }
  const server = createServer({ noDelay: true }, (client) => {
    const pair: Pair = {
      client,
      server: connect({ ...target, noDelay: true }),
      isFrozen: isSilent,
      listens: false,
      isAnswerLost: false,
      isHeld: false,
      isAnswered: true,
      commits: commitsOf(),
    }
    pairs.add(pair)
    client.on('data', (bytes: Buffer) => {
      if (pair.isFrozen) return
      pair.listens ||= bytes.includes('LISTEN')
      carried.bytes += bytes.length
      if (pair.isAnswered) carried.roundTrips++
      pair.isAnswered = false
      const fate = pair.isHeld ? 'hold' : line.watch(bytes, pair.commits(bytes))
      if (fate === 'lose') return close(pair)
      if (fate === 'hold') {
        held.push({ to: pair.server, bytes })
        // The client learns nothing of what becomes of it.
        pair.isHeld = true
        client.destroy()
        return
      }
      pair.isAnswerLost ||= fate === 'lose the answer'
      pair.server.write(bytes)
    })
    pair.server.on('data', (bytes) => {
      carried.bytes += bytes.length
      pair.isAnswered = true
      if (pair.isAnswerLost) close(pair)
      else if (!pair.isFrozen && !pair.isHeld) client.write(bytes)
    })
    client.on('close', () => {
      if (!pair.isHeld) close(pair)
    })
    pair.server.on('close', () => close(pair))
    for (const socket of [client, pair.server]) socket.on('error', () => close(pair))
  })
  const close = (pair: Pair) => {
    pairs.delete(pair)
    pair.client.destroy()
    pair.server.destroy()
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url.port = String((server.address() as AddressInfo).port)
  const line: DatabaseLine = {
    databaseUrl: url.href,
    watch: () => 'pass',
    carried,
    cut() {
      for (const pair of pairs) close(pair)
    },
    freeze() {
      for (const pair of pairs) pair.isFrozen = true
    },
    freezeListeners() {
      const listening = [...pairs].filter(({ listens }) => listens)
      for (const pair of listening) pair.isFrozen = true
      return listening.length
    },
    silence() {
      isSilent = true
      line.freeze()
    },
    speak() {
      isSilent = false
    },
    leadTo(databaseUrl) {
      const { hostname, port } = new URL(databaseUrl)
      target = { host: hostname, port: Number(port) }
    },
    deliver() {
      for (const { to, bytes } of held.splice(0)) to.write(bytes)
    },
    async [Symbol.asyncDispose]() {
      line.cut()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return line
}

interface Pair {
  client: Socket
  server: Socket
  isFrozen: boolean
  listens: boolean
  isAnswerLost: boolean
  isHeld: boolean
  isAnswered: boolean
  commits(bytes: Buffer): boolean
}

/** Finds a COMMIT among the messages of a connection: as a query, or as a statement that was prepared before. */
function commitsOf() {
  let prepared: string | null = null
  return (bytes: Buffer): boolean => {
    let found = false
    for (let at = 0; at + 5 <= bytes.length; at += 1 + bytes.readUInt32BE(at + 1)) {
      const kind = String.fromCharCode(bytes[at]!)
      // Q: query; P: statement, query; B: portal, statement.
      const [one, two] = bytes.toString('latin1', at + 5, at + 1 + bytes.readUInt32BE(at + 1)).split('\0')
      if (kind === 'P' && two === 'COMMIT') prepared = one!
      found ||= kind === 'Q' ? one === 'COMMIT' : kind === 'B' && two === prepared
    }
    return found
  }
}

/** The first COMMIT has this fate; everything else passes. */
export function onCommit(fate: ReturnType<Watch>): Watch {
  let isDone = false
  return (_bytes, commits) => {
    if (isDone || !commits) return 'pass'
    isDone = true
    return fate
  }
}
