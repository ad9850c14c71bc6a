/** Checks records of collections without a built-in lexicon against published documents. */
import { findDefinition, invalidRecord, keyFaultOf, type RecordOutcome } from './lexicons.ts'
import { LexiconFault, schemaCompiler, type Document } from './schema.ts'

/** Thrown if the check needs a document that was not given. */
export class MissingLexicon extends LexiconFault {
  constructor(readonly nsid: string) {
    super(`the lexicon ${nsid} is missing`)
  }
}

export interface PublishedRecord {
  collection: string
  /** Undefined if the server has yet to generate it. */
  rkey?: string
  /** The record in JSON form. The caller has checked `$type`. */
  record: unknown
}

/**
 * Check a record against the given documents and the built-in ones. Throws `MissingLexicon` as soon as another document
 * is needed; only those that the value reaches are. Returns `unknown` if the documents do not describe the record.
 */
export function validatePublishedRecord(
  documents: ReadonlyMap<string, Document>,
  { collection, rkey, record }: PublishedRecord,
): RecordOutcome {
  const find = (ref: string) => findDefinition(ref) ?? findPublished(documents, ref)
  try {
    const definition = find(`lex:${collection}`)
    if (definition?.type !== 'record') return { status: 'unknown' }
    const keyFault = rkey === undefined ? null : keyFaultOf(definition.key!, collection, rkey)
    if (keyFault !== null) return { status: 'invalid', message: keyFault }
    const fault = schemaCompiler(find)(definition.record!)(record)
    return fault === null ? { status: 'valid' } : { status: 'invalid', message: invalidRecord(collection, fault) }
  } catch (error) {
    if (error instanceof LexiconFault && !(error instanceof MissingLexicon)) return { status: 'unknown' }
    throw error
  }
}

function findPublished(documents: ReadonlyMap<string, Document>, ref: string): Document['defs'][string] | undefined {
  const [nsid = '', name = 'main'] = ref.slice('lex:'.length).split('#')
  const document = documents.get(nsid)
  if (!document) throw new MissingLexicon(nsid)
  return Object.hasOwn(document.defs, name) ? document.defs[name] : undefined
}
