/** Names of tests, as documents and tables refer to them. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dir, '..', '..')
const texts = new Map<string, string>()

/** Whether a file has a test or a group of this name, written as in the source. */
export function hasTest(path: string, name: string): boolean {
  if (!texts.has(path)) texts.set(path, existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : '')
  const text = texts.get(path)!
  return [`'${name}'`, `\`${name}\``, `"${name}"`].some((literal) => text.includes(literal))
}
