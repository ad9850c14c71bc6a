/** A reader of a database file that counts the pages that each statement reads from the file. Linux only. */
import { Database as Connection, type SQLQueryBindings } from 'bun:sqlite'
import { readFileSync } from 'node:fs'
import type { Reader, Sql } from '../../src/platform/database/database.ts'

const PAGE_BYTES = 4096

/** Bytes that this thread has asked files for. */
const bytesRead = (): number => Number(/rchar: (\d+)/.exec(readFileSync('/proc/thread-self/io', 'utf8'))![1])
/** Asking takes some itself. */
const ownBytes = (): number => {
  const before = bytesRead()
  return bytesRead() - before
}

export interface CountingReader extends Reader, Disposable {
  /** Pages of the last statement, each counted once: nothing was in memory before it. */
  pages: number
}

/** The database must be closed, and without a log. */
export function countingReader(path: string): CountingReader {
  const ask = <Row>({ texts, values }: Sql): Row[] => {
    using connection = new Connection(path, { readonly: true })
    const text = texts.reduce((all, piece, i) => `${all}?${i}${piece}`)
    const statement = connection.query<Row, SQLQueryBindings[]>(text)
    const own = ownBytes()
    const before = bytesRead()
    const rows = statement.all(...(values as SQLQueryBindings[]))
    reader.pages = (bytesRead() - before - own) / PAGE_BYTES
    return rows
  }
  const reader: CountingReader = {
    pages: 0,
    all: (query) => Promise.resolve(ask(query)),
    get: (query) => Promise.resolve(ask<never>(query)[0] ?? null),
    [Symbol.dispose]() {},
  }
  return reader
}
