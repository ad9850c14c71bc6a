/** Regular expressions in code, and whether each takes linear time, whatever it reads. */
import { isProven, keepProofs } from './proofs.ts'
import { isNode, methodOf, nodesOf, syntaxOf, type SyntaxNode } from './syntax.ts'

export interface Pattern extends Expression {
  path: string
}

interface Expression {
  source: string
  flags: string
  /** Applied again where the last match ended: by its flags, or because a text is split at it. */
  isRepeated: boolean
}

/** Literals, and texts that a schema gives as `pattern`. */
export function patternsOf(path: string, text: string): Pattern[] {
  return [...nodesOf(syntaxOf(path, text))].flatMap(([node, parents]) => {
    const regex = node['regex'] as { pattern: string; flags: string } | undefined
    const source = regex?.pattern ?? schemaPattern(node)
    if (source === null) return []
    const flags = regex?.flags ?? 'u'
    return [{ path, source, flags, isRepeated: /[gy]/.test(flags) || methodOf(parents.at(-1)!) === 'split' }]
  })
}

/** How often a pattern is built with `RegExp`. */
export const countBuiltPatterns = (path: string, text: string): number =>
  [...nodesOf(syntaxOf(path, text))].filter(
    ([{ type, callee }]) => /^(?:New|Call)Expression$/.test(type) && isNode(callee) && callee['name'] === 'RegExp',
  ).length

function schemaPattern({ type, key, value }: SyntaxNode): string | null {
  if (type !== 'Property' || !isNode(key) || key['name'] !== 'pattern' || !isNode(value)) return null
  if (value.type === 'Literal' && typeof value['value'] === 'string') return value['value']
  const quasi = value.type === 'TaggedTemplateExpression' ? (value['quasi'] as SyntaxNode) : null
  const [only, ...others] = (quasi?.['quasis'] ?? []) as { value: { raw: string } }[]
  return only !== undefined && others.length === 0 ? only.value.raw : null
}

/**
 * Whether it is proven that matching takes linear time: a search from every position, and all searches of a repeated
 * one. A bounded repetition that is too large to be proven as it stands is proven as an unbounded one, which has more
 * ways to fail. That holds for patterns that must reach the end of the text.
 */
async function isLinear({ source, flags, isRepeated }: Expression): Promise<boolean> {
  const ways = isRepeated ? [] : alternativesOf(source)
  if (ways.length > 1) {
    for (const way of ways) if (!(await isLinear({ source: way, flags, isRepeated }))) return false
    return true
  }
  const form = isRepeated ? repeatedForm(source, flags) : source
  return (source.endsWith('$') && (await isProven(unbounded(form), flags))) || isProven(form, flags)
}

/** Those of which it is not proven, one after another. */
export async function slowOf<Some extends Expression>(patterns: readonly Some[]): Promise<Some[]> {
  const slow: Some[] = []
  for (const pattern of patterns) if (!(await isLinear(pattern))) slow.push(pattern)
  await keepProofs()
  return slow
}

/** The alternatives of a whole pattern. Each is tried at every place at most once, so that their costs add up. */
function alternativesOf(source: string): string[] {
  const alternatives = ['']
  let depth = 0
  for (const [token] of source.matchAll(/\\.|\[(?:[^\]\\]|\\.)*\]|./gs)) {
    if (token === '(') depth++
    if (token === ')') depth--
    if (token === '|' && depth === 0) alternatives.push('')
    else alternatives[alternatives.length - 1] += token
  }
  return alternatives
}

/**
 * One match whose cost is that of all: at each place the pattern, or else the next character. A sticky one ends at the
 * first that fails.
 */
const repeatedForm = (source: string, flags: string): string =>
  flags.includes('y') ? `^(?:${source})*` : `^(?:${source}|[^])*$`

/** A few repetitions distinguish what they are to distinguish; only many of them make the automaton large. */
const FEW = 8
const unbounded = (source: string): string =>
  source.replace(/\{(\d+)(?:,(\d+))?\}/g, (whole, least: string, most: string = least) =>
    Number(most) <= FEW ? whole : Number(least) <= FEW ? `{${least},}` : '+',
  )
