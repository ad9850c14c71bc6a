/**
 * The statements that PostgreSQL has and SQLite does not, and the translation of those that both have.
 *
 * Each special statement is recognised by a part of its text. What it does here is written by hand; where its text may
 * be patched to put back a fault, the parts that matter are read from the text.
 */
import type { SQLQueryBindings } from 'bun:sqlite'
import { CLOCK_IDS } from '../../../src/protocol/tid.ts'
import {
  answerOf,
  Blocked,
  type PostgresServer,
  type Request,
  type Session,
  type Transaction,
} from './postgres-server.ts'
import { SqlFault, type Answer } from './sql-fault.ts'
import { noTouches, prefixOf } from './storage.ts'

interface Call {
  server: PostgresServer
  session: Session
  transaction: Transaction
  text: string
  values: readonly unknown[]
}

export function runStatement(
  server: PostgresServer,
  session: Session,
  transaction: Transaction,
  { text, values }: Request,
): Answer {
  return actOf(text)({ server, session, transaction, text, values })
}

const acts = new Map<string, (call: Call) => Answer>()

function actOf(text: string): (call: Call) => Answer {
  const known = acts.get(text)
  if (known !== undefined) return known
  const [, act = plain] = specials.find(([part]) => text.includes(part)) ?? []
  acts.set(text, act)
  return act
}

const key = (value: unknown) => `advisory ${String(value)}`
/** Advisory locks on hashes of texts. */
const hashed = (text: unknown) => key(`hash of ${String(text)}`)

function rows(list: Record<string, unknown>[], command = 'SELECT'): Answer {
  const answer = list as Answer
  answer.count = list.length
  answer.command = command
  return answer
}

const specials: readonly (readonly [string, (call: Call) => Answer])[] = [
  // First, because it contains the text of others.
  ['taken AS (DELETE FROM unnumbered_event', batch],
  [
    'INSERT INTO used_proof',
    (call) => {
      const digests = String(call.values[0]).split(' ')
      const text = `INSERT INTO used_proof (digest, used_at) VALUES ($1, CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT))
        ON CONFLICT (digest) DO NOTHING RETURNING digest`
      return rows(
        digests.flatMap((digest) =>
          plain({ ...call, text, values: [Buffer.from(digest, 'hex')] }).length === 0 ? [] : [{ digest }],
        ),
      )
    },
  ],
  ['string_agg(letter', ({ values }) => rows([{ name: 'simulated', letters: (values[0] as string[]).join('') }])],
  [
    'SELECT pg_advisory_xact_lock_shared(',
    ({ server, session, text, values }) => {
      server.lock(session, key(/shared\((\d+)\)/.exec(text)![1]), 'shared', 'transaction')
      for (const name of (values[0] as string[]).toSorted())
        server.lock(session, hashed(name), 'exclusive', 'transaction')
      return rows([{}])
    },
  ],
  [
    'SELECT pg_advisory_xact_lock($1)',
    ({ server, session, values }) => {
      server.lock(session, key(values[0]), 'exclusive', 'transaction')
      return rows([{}])
    },
  ],
  [
    'SELECT pg_terminate_backend(pid)',
    ({ server, values }) => {
      for (const other of server.sessions)
        if (other.pid === values[0] && other.started === values[1]) server.terminate(other)
      return rows([])
    },
  ],
  ['CAST(backend_start AS TEXT) AS started', ({ session }) => rows([{ pid: session.pid, started: session.started }])],
  [
    'SET lock_timeout',
    ({ session, text }) => {
      const [, secs] = /lock_timeout = '(\d+)s'/.exec(text) ?? []
      session.lockTimeout = secs === undefined ? (session.settings.lock_timeout ?? 0) : Number(secs) * 1000
      return answerOf('SET')
    },
  ],
  ['SET LOCAL', () => answerOf('SET')],
  ['CREATE TABLE IF NOT EXISTS schema_migration', () => answerOf('CREATE')],
  [
    'SELECT pg_advisory_unlock_all()',
    ({ server, session }) => {
      server.releaseAll(session)
      return rows([{}])
    },
  ],
  [
    'SELECT pg_try_advisory_lock(hashtextextended($1, 0))',
    ({ server, session, values }) => {
      const name = hashed(values[0])
      const isTaken = server.blockers(session, name, 'exclusive').size === 0
      if (isTaken) server.lock(session, name, 'exclusive', 'session')
      return rows([{ taken: isTaken, pid: session.pid }])
    },
  ],
  [
    'SELECT pg_advisory_unlock(',
    ({ server, session, text, values }) => {
      const name = text.includes('hashtextextended') ? hashed(values[0]) : key(values[0])
      return rows([{ pg_advisory_unlock: server.unlock(session, name) }])
    },
  ],
  [
    'SELECT pg_advisory_lock',
    ({ server, session, text, values }) => {
      const mode = text.includes('pg_advisory_lock_shared') ? 'shared' : 'exclusive'
      server.lock(session, key(values[0] ?? /\((\d+)\)/.exec(text)![1]), mode, 'session')
      return rows([{}])
    },
  ],
  [
    'WITH left_mark AS',
    (call) => {
      const { count } = plain({
        ...call,
        text: 'UPDATE commit_mark SET mark = mark + 1 WHERE writer = $1 AND mark = $2',
      })
      if (count === 0) throw new SqlFault('22012', 'division by zero')
      return rows([{}])
    },
  ],
  [
    'FROM generate_series(0,',
    (call) => {
      const taken = new Set(
        plain({ ...call, text: 'SELECT clock_id FROM node', values: [] }).map((row) => row['clock_id']),
      )
      const free = Array.from({ length: CLOCK_IDS }, (_, id) => id).filter((id) => !taken.has(id))
      return rows([{ id: call.server.timeline.random.of(free) }])
    },
  ],
  [
    'FROM node LEFT JOIN pg_stat_activity',
    (call) => {
      const { server } = call
      const found = plain({
        ...call,
        text: `SELECT id, name, version, started_at AS "startedAt", heartbeat_at AS "heartbeatAt" FROM node ORDER BY started_at, id`,
        values: [],
      })
      for (const row of found) {
        const its = [...server.sessions].filter(
          ({ settings }) => settings.application_name === `holdfast ${String(row['id'])}`,
        )
        const [ahead, alive] = [Number(row['heartbeatAt']) - server.wallMillis, Number(call.values[0])]
        row['isAlive'] = ahead > -alive && (ahead <= alive || its.length > 0)
        row['connections'] = its.length
        row['busyConnections'] = its.filter(
          ({ requests, transaction }) => requests.length > 0 || transaction !== null,
        ).length
      }
      return found
    },
  ],
  [
    'SELECT pg_notify(',
    ({ server, values }) => {
      for (const channel of values[0] as string[]) server.notify(channel)
      return rows([{}])
    },
  ],
  [
    'SELECT 1 FROM lease WHERE name = $1 AND fence = $2 FOR SHARE',
    (call) => {
      guardLease(call, call.values[0])
      return plain({ ...call, text: 'SELECT 1 FROM lease WHERE name = $1 AND fence = $2' })
    },
  ],
  ['INSERT INTO unnumbered_event', insertUnnumbered],
  ['DELETE FROM unnumbered_event WHERE id IN (SELECT id FROM unnumbered_event WHERE did', deleteUnnumbered],
  ['limit_window WHERE id IN (SELECT id FROM sent)', addToLimits],
  [
    'generate_series(1,',
    ({ server }) => {
      if (server.isFull) throw new SqlFault('53100', 'could not write to file: No space left on device')
      return rows([{ count: 0 }])
    },
  ],
]

/** The row of a lease, which a new holder changes. */
function guardLease({ server, session }: Call, name: unknown): void {
  server.lock(session, `lease ${String(name)}`, 'shared', 'transaction')
}

function insertUnnumbered(call: Call): Answer {
  const { server, session, transaction, text, values } = call
  const COLUMNS = 7
  const count = Math.floor((values.length - 2) / COLUMNS)
  const events = Array.from({ length: count }, (_, i) => values.slice(i * COLUMNS, (i + 1) * COLUMNS))
  if (text.includes('pg_advisory_xact_lock('))
    for (const did of [...new Set(events.map((event) => String(event[1])))].toSorted())
      server.lock(session, hashed(`${String(values.at(-2))}${did}`), 'exclusive', 'transaction')
  if (text.includes('pg_current_xact_id()')) server.identify(transaction)
  transaction.hasEvents = true
  for (const [, did, type, erases, head, middle, rest] of events)
    plain({
      ...call,
      text: `INSERT INTO unnumbered_event (id, did, event_type, erases, written_at, head, middle, rest)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
      values: [server.nextEventId++, did, type, erases, values.at(-1), head, middle, rest],
    })
  return answerOf('INSERT', count)
}

function deleteUnnumbered(call: Call): Answer {
  const { storage } = call.server
  storage.show(call.transaction.changes)
  storage.command('SAVEPOINT whole')
  try {
    const { count } = plain({ ...call, text: 'DELETE FROM unnumbered_event WHERE did = $1' })
    return plain({
      ...call,
      text: `UPDATE repo_seq_past SET spent_through = max(spent_through, coalesce((SELECT max(seq) FROM repo_seq), 0)) + $1`,
      values: [count],
    })
  } catch (error) {
    storage.command('ROLLBACK TO whole')
    throw error
  } finally {
    storage.command('RELEASE whole')
  }
}

/** The sequencer's statement. Its values are in the order of its text. */
function batch(call: Call): Answer {
  const { server, transaction, text, values } = call
  const given = [...values]
  const next = () => given.shift()
  const ask = (statement: string, ...asked: unknown[]) => plain({ ...call, text: statement, values: asked })
  let isHeld = true
  if (text.includes('FROM lease')) {
    const [name, fence] = [next(), next()]
    guardLease(call, name)
    isHeld = ask('SELECT 1 FROM lease WHERE name = $1 AND fence = $2', name, fence).length > 0
  }
  const { seq } = ask(
    `SELECT max(spent_through, coalesce((SELECT max(seq) FROM repo_seq), 0)) AS seq FROM repo_seq_past`,
  )[0] as { seq: number }
  const knownHead = Number(next())
  let isWhole = seq >= knownHead
  if (text.includes('FROM database_history')) {
    const generation = next()
    const history = ask('SELECT agreed FROM database_history WHERE generation = $1 AND lost IS NULL', generation)
    isWhole &&= history[0]?.['agreed'] === identityOf(server)
  }
  const [floor, maxEvents, bytes, sequencedAt] = [next(), next(), next(), next()].map(Number)
  if (given.length > 1) throw new Error(`a batch has ${given.length} values too many`)
  const time = given[0] as Uint8Array
  const order = text.includes('ORDER BY id LIMIT') ? 'ORDER BY id' : ''
  const oldest =
    !isHeld || !isWhole ? [] : ask(`SELECT * FROM unnumbered_event WHERE id > $1 ${order} LIMIT $2`, floor, maxEvents)
  let before = 0
  const taken = oldest.filter((event) => {
    const fits = before < bytes!
    before += (event['rest'] as Uint8Array).length
    return fits
  })
  let head = seq
  server.identify(transaction)
  if (taken.length > 0) {
    ask(`UPDATE repo_seq_past SET spent_through = $1`, seq + taken.length)
    for (const { id } of taken) ask('DELETE FROM unnumbered_event WHERE id = $1', id)
    const erasing = new Map(
      taken.filter(({ erases }) => erases === 1).map((event) => [event['did'], Number(event['id'])]),
    )
    for (const did of erasing.keys()) ask('DELETE FROM repo_seq WHERE did = $1', did)
    for (const event of taken) {
      head++
      if ((erasing.get(event['did']) ?? 0) > Number(event['id'])) continue
      const pieces = [event['head'], cborOf(head), event['middle'], time, event['rest']] as Uint8Array[]
      ask(
        'INSERT INTO repo_seq (seq, did, event_type, sequenced_at, frame) VALUES ($1, $2, $3, $4, $5)',
        head,
        event['did'],
        event['event_type'],
        sequencedAt,
        new Uint8Array(Buffer.concat(pieces)),
      )
    }
  }
  const lastId = taken.reduce((last, { id }) => Math.max(last, Number(id)), 0)
  return rows([
    {
      isHeld,
      isWhole,
      head,
      events: taken.length,
      lastId: taken.length === 0 ? null : lastId,
      xmin: Math.min(server.xmin, transaction.xid!),
      xid: transaction.xid,
      // No transaction above this one has ended. The server does not ask for it, but did once.
      xmax: server.xmax,
    },
  ])
}

/** An unsigned integer as CBOR. */
function cborOf(value: number): Uint8Array {
  if (value < 24) return new Uint8Array([value])
  if (value < 256) return new Uint8Array([0x18, value])
  if (value < 65_536) return new Uint8Array([0x19, value >> 8, value & 255])
  if (value < 2 ** 32) {
    const bytes = Buffer.alloc(5, 0x1a)
    bytes.writeUInt32BE(value, 1)
    return bytes
  }
  const bytes = Buffer.alloc(9, 0x1b)
  bytes.writeBigUInt64BE(BigInt(value), 1)
  return bytes
}

function addToLimits(call: Call): Answer {
  const { server, values } = call
  const ask = (text: string, ...asked: unknown[]) => plain({ ...call, text, values: asked })
  // In the order of the text: the skew, the rows, and the present time twice.
  const skewed = Number(
    values.find((value) => (typeof value === 'bigint' || typeof value === 'number' ? Number(value) > 1e12 : false)),
  )
  const list = String(values.find((value) => typeof value === 'string' && value.includes(' ')))
  const now = skewed - 10_000
  const alive = ask('SELECT count(*) AS alive FROM node WHERE heartbeat_at > $1', server.wallMillis - 15_000)[0]![
    'alive'
  ]
  return rows(
    list.split(',').map((one) => {
      const [id, ...numbers] = one.split(' ')
      const [endsAt, used, known, millis, wanted, most] = numbers.map(Number) as [
        number,
        number,
        number,
        number,
        number,
        number,
      ]
      const [old] = ask('SELECT ends_at, used FROM limit_window WHERE id = $1', id)
      const common = { id, nodes: alive }
      if (old === undefined) {
        ask('INSERT INTO limit_window (id, ends_at, used) VALUES ($1, $2, $3)', id, endsAt, Math.max(0, used))
        return { ...common, endsAt, used: Math.max(0, used), granted: null }
      }
      const [oldEnds, oldUsed] = [Number(old['ends_at']), Number(old['used'])]
      const latest = skewed + millis
      const summed = Math.max(0, oldEnds <= now ? used : oldEnds > latest ? known : oldUsed + used)
      const ends = oldEnds <= now || oldEnds > latest ? endsAt : oldEnds
      const granted = summed + wanted <= most
      const total = summed + (granted ? wanted : 0)
      ask('UPDATE limit_window SET used = $2, ends_at = $3 WHERE id = $1', id, total, ends)
      return { ...common, endsAt: ends, used: total, granted }
    }),
  )
}

export const identityOf = ({ timelineId }: PostgresServer): string =>
  `7001 ${String(timelineId).padStart(8, '0')} 16384 16999`

interface Translation {
  text: string
  /** The first word. */
  command: string
  isRead: boolean
  hasRows: boolean
  /** What is bound after the values of the statement. */
  extra: ('now' | 'pid' | 'timeline')[]
  /** Columns that are true or false. */
  booleans: string[]
  hasMarks: boolean
  lease: boolean
}

const translations = new Map<string, Translation>()

const replacements: readonly [string | RegExp, string][] = [
  ['(SELECT CAST(system_identifier AS TEXT) FROM pg_control_system())', `'7001'`],
  ['(SELECT CAST(oid AS TEXT) FROM pg_database WHERE datname = current_database())', `'16384'`],
  [`CAST(CAST(CAST('database_history' AS REGCLASS) AS OID) AS TEXT)`, `'16999'`],
  [`coalesce(json_object_agg(writer, mark), '{}')`, `json_group_object(writer, mark)`],
  ['pg_is_in_recovery()', '0'],
  [
    /greatest\(spent_through, \(SELECT max\(seq\) FROM repo_seq\)\)/g,
    'max(spent_through, coalesce((SELECT max(seq) FROM repo_seq), 0))',
  ],
  [/ AS (?:BIGINT|BYTEA)\)/g, ''],
  [/\s+FOR (?:UPDATE|SHARE)\b/g, ''],
]

function translated(text: string, count: number): Translation {
  const known = translations.get(text)
  if (known !== undefined) return known
  const extra: Translation['extra'] = []
  const place = (what: Translation['extra'][number]) => {
    if (!extra.includes(what)) extra.push(what)
    return `?${count + extra.indexOf(what) + 1}`
  }
  let sqlite = text
    .replaceAll('CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)', () => place('now'))
    .replaceAll('substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)', () => place('timeline'))
    .replaceAll('pg_backend_pid()', () => place('pid'))
  for (const [find, put] of replacements) {
    if (typeof find === 'string') sqlite = sqlite.replaceAll(find, put)
    else if (put !== '') sqlite = sqlite.replace(find, put)
  }
  sqlite = sqlite
    .replace(/ AS BIGINT\)/g, ' AS INTEGER)')
    .replace(/ AS BYTEA\)/g, ' AS BLOB)')
    .replace(/\s+FOR (?:UPDATE|SHARE)\b/g, '')
    .replace(/\bMATERIALIZED\b/g, '')
    .replace(/\$(\d+)/g, '?$1')
  const foreign = /\b(?:pg_\w+|unnest|generate_series|hashtextextended|json_\w*agg|to_regclass|extract)\s*\(/.exec(
    sqlite,
  )
  if (foreign !== null) throw new Error(`the simulator does not know ${foreign[0]} in: ${text}`)
  const made = {
    text: sqlite,
    command: /^\s*(\w+)/.exec(text)![1]!.toUpperCase(),
    isRead: /^\s*(?:SELECT|VALUES)\b/.test(text),
    hasRows: /^\s*SELECT\b/.test(text) || /\bRETURNING\b/.test(text),
    extra,
    booleans: [],
    hasMarks: text.includes('json_object_agg'),
    lease: /INSERT INTO lease\b/.test(text),
  }
  translations.set(text, made)
  return made
}

/** A statement that SQLite can run. */
function plain({ server, session, transaction, text, values }: Call): Answer {
  const statement = translated(text, values.length)
  const bound = (
    statement.extra.length === 0 ? values : [...values, ...statement.extra.map((what) => extras[what](server, session))]
  ) as SQLQueryBindings[]
  const storage = server.seenBy(transaction)
  if (statement.isRead) {
    storage.show(transaction.isSnapshot ? null : transaction.changes.hasChanged ? transaction.changes : null)
    return finished(rows(attempt(() => storage.all(statement.text, bound))), statement)
  }
  if (transaction.isSnapshot) throw new SqlFault('25006', 'cannot execute a change in a read-only transaction')
  const { command } = statement
  if (server.isFull && (command === 'INSERT' || command === 'WITH') && server.timeline.happens(0.7))
    throw new SqlFault('53100', 'could not extend file: No space left on device')
  server.identify(transaction)
  const { changes } = transaction
  storage.show(changes)
  if (statement.lease) server.lock(session, `lease ${String(values[0])}`, 'exclusive', 'transaction')
  // Nobody makes it wait, and SQLite undoes a statement that fails.
  const mayWait = server.mayBlock(session)
  if (mayWait) storage.beginStatement()
  try {
    const found = attempt(() =>
      statement.hasRows ? storage.all(statement.text, bound) : storage.run(statement.text, bound),
    )
    const hasTouched = typeof found === 'number' ? found > 0 : found.length > 0
    const touches = hasTouched ? storage.newTouches() : noTouches
    const answer = typeof found === 'number' ? answerOf(command, touches.changes) : rows(found, command)
    for (const lock of touches.locks) server.lock(session, lock, 'exclusive', 'transaction')
    if (mayWait) storage.endStatement()
    storage.keep(changes, touches)
    if (answer.count > 0) changes.hasChanged = true
    return finished(answer, statement)
  } catch (error) {
    if (mayWait) storage.undoStatement()
    else if (error instanceof Blocked) throw new Error('a statement waits that nobody makes wait', { cause: error })
    if (!(error instanceof SqlFault) || error.errno !== '23505') throw error
    // Somebody else may be about to delete the row that is in the way: PostgreSQL waits for the end of that.
    const [, table = ''] = /failed: (\w+)\./.exec(error.message) ?? []
    const prefix = prefixOf(storage.placeOf(table))
    const others = [...server.sessions].filter(
      (other) => other !== session && [...other.transactionLocks].some((lock) => lock.startsWith(prefix)),
    )
    throw others.length === 0 ? error : new Blocked(new Set(others))
  }
}

const extras: Readonly<Record<Translation['extra'][number], (server: PostgresServer, session: Session) => unknown>> = {
  now: (server) => server.wallMillis,
  pid: (_, session) => session.pid,
  timeline: (server) => String(server.timelineId).padStart(8, '0'),
}

function attempt<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    if (
      code === 'SQLITE_CONSTRAINT_UNIQUE' ||
      code === 'SQLITE_CONSTRAINT_PRIMARYKEY' ||
      code === 'SQLITE_CONSTRAINT_ROWID'
    )
      throw new SqlFault('23505', message)
    if (code?.startsWith('SQLITE_CONSTRAINT')) throw new SqlFault('23514', message)
    throw error
  }
}

function finished(answer: Answer, { hasMarks }: Translation): Answer {
  if (hasMarks) for (const row of answer) row['marks'] = JSON.parse(String(row['marks']))
  return answer
}
