/** Checks records of collections without a built-in lexicon against published documents. */
import { builtInCheck, findDefinition, invalidRecord, keyFaultOf, type RecordOutcome } from './lexicons.ts'
import { compilable, type LexiconDocument } from './lexicon-document.ts'
import { LexiconFault, schemaCompiler, TooManySteps, valueSchema, type Check, type Run } from './schema.ts'

export interface PublishedRecord {
  collection: string
  rkey: string
  /** The record in JSON form. The caller has checked `$type`. */
  record: unknown
}

/**
 * Most steps of one validation, over all its passes: a record of a megabyte takes about one million in each. A million
 * takes some 20 milliseconds.
 */
export const MAX_VALIDATION_STEPS = 4_000_000

/** `incomplete`: the value refers to these documents, which were not given. The given ones find no fault. */
export type PublishedOutcome = RecordOutcome | { status: 'incomplete'; missing: readonly string[] }

/**
 * Checks a record against published and built-in documents, in passes: while a pass returns `incomplete`, the caller
 * fetches the missing documents and calls `pass` again with all of them.
 */
export class PublishedValidation {
  #stepsLeft = MAX_VALIDATION_STEPS

  constructor(readonly written: PublishedRecord) {}

  get stepsTaken(): number {
    return MAX_VALIDATION_STEPS - this.#stepsLeft
  }

  /** `unknown`: the documents do not describe the record. */
  pass(documents: ReadonlyMap<string, LexiconDocument>): PublishedOutcome {
    const { collection, rkey, record } = this.written
    if (findDefinition(`lex:${collection}`)) return { status: 'unknown' }
    const missing = new Set<string>()
    const followed = new Map<string, Check>()
    const follow = (ref: string): Check => {
      const known = followed.get(ref)
      if (known) return known
      const { nsid, name } = partsOf(ref)
      const document = documents.get(nsid)
      if (!document) missing.add(nsid)
      const check = document ? checkOf(document, name) : () => null
      followed.set(ref, check)
      return check
    }
    const run: Run = { steps: this.#stepsLeft, follow }
    try {
      const document = documents.get(collection)
      if (!document) return { status: 'incomplete', missing: [collection] }
      const { main } = document.defs
      if (main?.['type'] !== 'record') return { status: 'unknown' }
      const keyFault = keyFaultOf(main['key'] as string, collection, rkey)
      if (keyFault !== null) return { status: 'invalid', message: keyFault }
      const fault = checkOf(document, 'main')(record, run)
      if (fault !== null) return { status: 'invalid', message: invalidRecord(collection, fault) }
      return missing.size > 0 ? { status: 'incomplete', missing: [...missing] } : { status: 'valid' }
    } catch (error) {
      if (error instanceof TooManySteps) return { status: 'invalid', message: tooManySteps(collection) }
      if (error instanceof LexiconFault) return { status: 'unknown' }
      throw error
    } finally {
      this.#stepsLeft = run.steps
    }
  }
}

const tooManySteps = (collection: string) =>
  `Invalid ${collection} record: checking it against its lexicon takes more than ${MAX_VALIDATION_STEPS} steps`

type DefinitionCheck = (name: string) => Check

const compiled = new WeakMap<LexiconDocument, DefinitionCheck>()

/** Returns the check of a definition. Throws `LexiconFault` if there is none, or if it does not describe a value. */
function checkOf(document: LexiconDocument, name: string): Check {
  let check = compiled.get(document)
  if (!check) compiled.set(document, (check = compileDocument(document)))
  return check(name)
}

/** References to other published documents are followed again in each run, because these change on their own. */
function compileDocument(document: LexiconDocument): DefinitionCheck {
  const { id, defs } = compilable(document)
  const compile = schemaCompiler((ref) => {
    if (findDefinition(ref)) return builtInCheck(ref)
    const { nsid, name } = partsOf(ref)
    return nsid === id ? check(name) : (value, run) => run.follow(ref)(value, run)
  })
  const check: DefinitionCheck = (name) => {
    if (!Object.hasOwn(defs, name)) throw new LexiconFault(`${id} has no definition ${name}`)
    return compile(valueSchema(defs[name]!))
  }
  return check
}

function partsOf(ref: string): { nsid: string; name: string } {
  const [nsid = '', name = 'main'] = ref.slice('lex:'.length).split('#')
  return { nsid, name }
}
