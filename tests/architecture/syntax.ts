/** Syntax trees of the code, and a walk over them. */
import { parseSync } from 'oxc-parser'

export interface SyntaxNode {
  type: string
  start: number
  end: number
  [member: string]: unknown
}

export function syntaxOf(path: string, text: string): SyntaxNode {
  const { program, errors } = parseSync(path, text)
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]!.message}`)
  return program as unknown as SyntaxNode
}

export const isNode = (value: unknown): value is SyntaxNode => typeof (value as SyntaxNode | null)?.type === 'string'

/** The nodes directly below a node, with the name of the member that each is in. */
export function* childrenOf(node: SyntaxNode): Generator<[member: string, child: SyntaxNode]> {
  for (const [member, value] of Object.entries(node))
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) yield [member, child]
}

/** The node and all nodes below it. `parents` are those above it, the nearest last. */
export function* nodesOf(
  node: SyntaxNode,
  parents: readonly SyntaxNode[] = [],
): Generator<[SyntaxNode, readonly SyntaxNode[]]> {
  yield [node, parents]
  const inside = [...parents, node]
  for (const [, child] of childrenOf(node)) yield* nodesOf(child, inside)
}

/** The name of a called method, such as `includes`; null for another node. */
export function methodOf(node: SyntaxNode): string | null {
  const callee = node['callee']
  if (
    node.type !== 'CallExpression' ||
    !isNode(callee) ||
    callee.type !== 'MemberExpression' ||
    !isNode(callee['property'])
  )
    return null
  return callee['property'].type === 'Identifier' ? String(callee['property']['name']) : null
}
