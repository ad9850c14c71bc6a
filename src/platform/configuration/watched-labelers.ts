/** The entries of `labeler.watched`. */
import type { Did } from '../../protocol/identifiers.ts'
import { distinct, tableKind } from './config-entries.ts'
import { did, listOf, mapped, text } from './config-kinds.ts'

export interface WatchedLabeler {
  did: Did
  /** Label values that count; empty: all of them. */
  labels: readonly string[]
}

const watchedLabeler = tableKind<WatchedLabeler>(
  'labeler',
  (entry) => {
    const subject = entry.required('did', did)
    const labels = entry.optional('labels', listOf(text)) ?? []
    return subject === null ? null : { did: subject, labels }
  },
  mapped(did, (subject): WatchedLabeler => ({ did: subject, labels: [] })).fromText,
)

export const watchedLabelers = distinct(listOf(watchedLabeler), 'did', (labeler) => labeler.did)
