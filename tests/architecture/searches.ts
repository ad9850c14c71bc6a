/**
 * Searches in loops: a list or a text that is read from its start for each of many others. Their cost is the product of
 * two lengths, so one of these has to be small.
 */
import { childrenOf, isNode, methodOf, nodesOf, syntaxOf, type SyntaxNode } from './syntax.ts'

/** Methods that call a function for each item. */
const loopMethods = new Set([
  'every',
  'filter',
  'find',
  'findIndex',
  'findLast',
  'flatMap',
  'forEach',
  'from',
  'map',
  'reduce',
  'replace',
  'some',
  'sort',
  'toSorted',
])

/** Methods that read, move or copy what they are called on. */
const searchMethods = new Set([
  'concat',
  'every',
  'filter',
  'find',
  'findIndex',
  'findLast',
  'includes',
  'indexOf',
  'lastIndexOf',
  'shift',
  'some',
  'splice',
  'toSpliced',
  'unshift',
  'with',
])

const isLoop = ({ type }: SyntaxNode) => /^(?:For|While|DoWhile)/.test(type)
const isFunction = ({ type }: SyntaxNode) => /Function/.test(type)

/** A function with a name, or the rest of a file. */
interface Part {
  name: string | null
  parameters: ReadonlySet<string>
  searches: Search[]
  calls: Call[]
}
interface Search {
  text: string
  /** The name that the receiver begins with; null if it begins with something else. */
  root: string | null
  isInLoop: boolean
  /** The receiver is what the loop goes through, or comes from it. */
  isOfItem: boolean
}
interface Call {
  name: string
  isInLoop: boolean
}

/**
 * Searches, each as its path and the begin of its text: those in a loop whose receiver is made outside of it, and those
 * in a function of the same file that a loop calls, whose receiver is a parameter.
 */
export function searchesOf(path: string, text: string): string[] {
  const program = syntaxOf(path, text)
  const constants = constantsOf(program)
  const parts = partsOf(program, text)
  const called = calledInLoops(parts)
  const found = parts.flatMap(({ name, parameters, searches }) =>
    searches.filter(({ root, isInLoop, isOfItem }) => {
      if (root === null || constants.has(root)) return false
      return isInLoop ? !isOfItem : name !== null && called.has(name) && parameters.has(root)
    }),
  )
  return [...new Set(found.map((search) => `${path}: ${search.text}`))]
}

/** Names of lists and texts that stand in the code. */
function constantsOf(program: SyntaxNode): Set<string> {
  const names = new Set<string>()
  for (const [, statement] of childrenOf(program))
    for (const [node, parents] of nodesOf(statement)) {
      if (parents.some(isFunction) || node.type !== 'VariableDeclarator') continue
      let value = node['init']
      while (isNode(value) && /^TS(?:As|Satisfies)/.test(value.type)) value = value['expression']
      if (isNode(value) && /^(?:ArrayExpression|Literal)$/.test(value.type)) names.add(nameOf(node['id']) ?? '')
    }
  return names
}

const nameOf = (node: unknown): string | null =>
  isNode(node) && node.type === 'Identifier' ? String(node['name']) : null

function partsOf(program: SyntaxNode, text: string): Part[] {
  const parts: Part[] = []
  const walk = (node: SyntaxNode, part: Part, loops: readonly ReadonlySet<string>[]): void => {
    const named = namedFunction(node)
    if (named !== null) {
      const inside: Part = { name: named.name, parameters: namesIn(named.node['params']), searches: [], calls: [] }
      parts.push(inside)
      if (isNode(named.node['body'])) walk(named.node['body'], inside, [])
      return
    }
    note(node, part, loops, text)
    const method = methodOf(node)
    for (const [member, child] of childrenOf(node)) {
      const isBody = isLoop(node)
        ? ['body', 'test', 'update'].includes(member)
        : isFunction(child) && loopMethods.has(method ?? '')
      walk(child, part, isBody && member !== 'callee' ? [...loops, declaredIn(isLoop(node) ? node : child)] : loops)
    }
  }
  const rest: Part = { name: null, parameters: new Set(), searches: [], calls: [] }
  parts.push(rest)
  walk(program, rest, [])
  return parts
}

function namedFunction(node: SyntaxNode): { name: string; node: SyntaxNode } | null {
  const name = nameOf(node.type === 'FunctionDeclaration' || node.type === 'VariableDeclarator' ? node['id'] : null)
  const body = node.type === 'FunctionDeclaration' ? node : node['init']
  return name !== null && isNode(body) && isFunction(body) ? { name, node: body } : null
}

function note(node: SyntaxNode, part: Part, loops: readonly ReadonlySet<string>[], text: string): void {
  const method = methodOf(node)
  const isInLoop = loops.length > 0
  if (node.type === 'CallExpression' && nameOf(node['callee']))
    part.calls.push({ name: nameOf(node['callee'])!, isInLoop })
  if (method === null) return
  if (loopMethods.has(method))
    for (const [, argument] of childrenOf(node))
      if (nameOf(argument)) part.calls.push({ name: nameOf(argument)!, isInLoop: true })
  if (!searchMethods.has(method)) return
  const root = rootOf(node)
  const callee = node['callee'] as SyntaxNode
  part.searches.push({
    text: `${text.slice(callee.start, callee.end).replace(/\s+/g, ' ')}(`,
    root,
    isInLoop,
    isOfItem: root !== null && loops.some((names) => names.has(root)),
  })
}

function rootOf(node: SyntaxNode): string | null {
  for (let at: unknown = node; isNode(at); at = at['callee'] ?? at['object'] ?? at['expression'] ?? at['argument']) {
    if (at.type === 'ThisExpression') return 'this'
    if (at.type === 'Identifier') return nameOf(at)
  }
  return null
}

/** Names that a loop or a function declares. */
function declaredIn(node: SyntaxNode): Set<string> {
  const names = namesIn(node['params'])
  for (const [inner] of nodesOf(node))
    if (inner.type === 'VariableDeclarator') for (const name of namesIn(inner['id'])) names.add(name)
  return names
}

/** Identifiers in patterns. Also collects names of defaults, which does no harm. */
function namesIn(value: unknown): Set<string> {
  const nodes = (Array.isArray(value) ? value : [value]).filter(isNode)
  return new Set(nodes.flatMap((node) => [...nodesOf(node)].flatMap(([inner]) => nameOf(inner) ?? [])))
}

/** Names of functions that loops call, also by way of others. */
function calledInLoops(parts: readonly Part[]): Set<string> {
  const called = new Set(parts.flatMap(({ calls }) => calls.filter(({ isInLoop }) => isInLoop).map(({ name }) => name)))
  for (const name of called)
    for (const { calls } of parts.filter((part) => part.name === name)) for (const call of calls) called.add(call.name)
  return called
}
