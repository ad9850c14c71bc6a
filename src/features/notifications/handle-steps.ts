/**
 * Handles, under which the relay knows devices. A handle belongs to the token of a device, so registrations of several
 * accounts on one phone have the same one.
 */
import { createHash } from 'node:crypto'
import type { Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import { withdrawStep, type StepKind } from '../../platform/running/steps.ts'
import { isHandleInUse, isTokenRegistered, type PushRegistration } from './push-registration-store.ts'

type HandleOrder = { ask: 'register'; token: string; topic: string } | { ask: 'drop'; handle: string }

export const handleStep: StepKind<HandleOrder> = {
  name: 'push-handle',
  concurrency: 1,
  inOrder: true,
  maxSteps: 2000,
  maxTries: null,
  firstWaitSecs: 5,
  maxWaitSecs: 300,
  async take(ctx) {
    if (ctx.config.notifications.relay !== null) throw new Error('the relay cannot be reached')
  },
}

/** The key of the step about a token or a handle, which are not for everybody who lists steps. */
const keyOf = (text: string) => createHash('sha256').update(text).digest('base64url')

type Steps = Pick<Context, 'config' | 'steps'>

/** Ask the relay for the handle of a token, once the transaction is durable. A request that waits is replaced. */
export async function orderHandle({ steps }: Steps, tx: Tx, { token, topic }: Pick<PushRegistration, 'token' | 'topic'>): Promise<void> {
  await steps.add(tx, handleStep, { key: keyOf(token), payload: { ask: 'register', token, topic } })
}

/** Do what follows when a registration is gone from the table, for its token and handle if no other has them. */
export async function releaseHandle(
  { config, steps }: Steps,
  tx: Tx,
  { token, handle }: Pick<PushRegistration, 'token' | 'handle'>,
): Promise<void> {
  if (!(await isTokenRegistered(tx, token))) await withdrawStep(tx, handleStep, keyOf(token))
  if (handle === null || config.notifications.relay === null || (await isHandleInUse(tx, handle))) return
  await steps.add(tx, handleStep, { key: keyOf(handle), payload: { ask: 'drop', handle } })
}
