/** The context of handlers that only read: the parts that public reads use. Using another part throws `Elsewhere`. */
import type { Context } from '../context.ts'
import { onlyHere } from '../database/reader-database.ts'

type Parts = Pick<Context, 'config' | 'db' | 'clock' | 'log' | 'limits'> & Partial<Pick<Context, 'metrics'>>

export const readingContext = (parts: Parts): Context =>
  onlyHere<Context>('context', {
    get config() {
      return parts.config
    },
    db: parts.db,
    clock: parts.clock,
    log: parts.log,
    limits: parts.limits,
    ...(parts.metrics && { metrics: parts.metrics }),
    tracing: null,
    loop: onlyHere<Context['loop']>('loop', { enter: () => {}, leave: () => {} }),
  })
