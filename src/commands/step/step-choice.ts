import { OperatorError } from '../../base/operator-error.ts'
import { Misuse } from '../command.ts'
import type { Server } from '../operator-server.ts'

const idPattern = /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/

/**
 * Interpret an argument as a step id or as a kind of steps. Throws `Misuse` if it is missing, OperatorError if it is
 * neither.
 */
export async function chosenSteps(
  server: Server,
  name: string | undefined,
): Promise<{ id: string } | { kind: string }> {
  if (name === undefined) throw new Misuse('an id or a kind is required')
  if (idPattern.test(name)) return { id: name }
  await requireKind(server, name)
  return { kind: name }
}

/** Throws OperatorError if no step has this kind. */
export async function requireKind(server: Server, name: string): Promise<void> {
  const { kinds } = await server.get<{ kinds: { kind: string }[] }>('/v1/admin/steps', { limit: 1 })
  if (kinds.some(({ kind }) => kind === name)) return
  throw new OperatorError(
    `there is no step kind named ${name}; the kinds are ${kinds.map(({ kind }) => kind).join(', ')}`,
  )
}

export const stepCount = (count: number): string => (count === 1 ? '1 step' : `${count} steps`)
