/**
 * Proofs that patterns take linear time, which are kept: what is proven once with the same checker stays so. A pattern
 * that is not proven is checked again by every run.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { check, type Parameters as CheckerLimits } from 'recheck'
import checker from 'recheck/package.json'

/** Decided by automata, which is a proof; a search for bad inputs would only find none. */
const limits: CheckerLimits = { checker: 'automaton', timeout: 30_000, maxNFASize: 1_000_000, maxPatternSize: 100_000 }

const FOLDER = join(import.meta.dir, '../../node_modules/.cache/holdfast-proofs')
const FILE = join(FOLDER, `${checker.version}-${Bun.hash(JSON.stringify(limits)).toString(36)}.json`)

const kept = new Set(readKept())
const proofs = new Map<string, Promise<boolean>>()

function readKept(): string[] {
  try {
    return JSON.parse(readFileSync(FILE, 'utf8')) as string[]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** The checker is a native program of the package, where it has one: that takes an eighth of the processor's time. */
export function isProven(source: string, flags: string): Promise<boolean> {
  const plain = flags.replace(/[dgy]/g, '').replace('v', 'u')
  const key = `${plain}/${source}`
  if (kept.has(key)) return Promise.resolve(true)
  const known = proofs.get(key) ?? check(source, plain, limits).then(({ status }) => status === 'safe')
  proofs.set(key, known)
  return known
}

/** Keep what was proven so far, for the next run. */
export async function keepProofs(): Promise<void> {
  for (const [key, proof] of proofs) if (await proof) kept.add(key)
  mkdirSync(FOLDER, { recursive: true })
  const part = `${FILE}.${process.pid}`
  writeFileSync(part, JSON.stringify([...kept].toSorted()))
  renameSync(part, FILE)
}
