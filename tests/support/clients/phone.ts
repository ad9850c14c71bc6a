/** A phone that asks for pushes, and reads those that the relay passed on. */
import { randomBytes } from 'node:crypto'
import { enqueuePush } from '../../../src/features/push/notifications/notifications.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, type TestAccount } from './account.ts'
import { bearer, request, type Answer } from './http.ts'
import type { TestPds } from '../servers/pds.ts'
import { PushDevice } from './push-device.ts'
import type { Sent } from '../servers/push-relay.ts'

export const TOPIC = 'org.example.wallet'
export const message = {
  type: 'agent_claim_pending',
  title: 'A program asks for access',
  body: 'It wants to act for your account.',
  data: { claimAttemptId: 'cla_1' },
}

export class Phone {
  constructor(
    readonly pds: Pick<TestPds, 'url'>,
    readonly account: Pick<TestAccount, 'accessJwt' | 'did'>,
    readonly uuid = `phone ${randomBytes(4).toString('hex')}`,
    readonly token = randomBytes(32).toString('hex'),
    readonly device = new PushDevice(),
  ) {}

  register(changes: object = {}): Promise<Answer> {
    const { uuid, token, device, account, pds } = this
    const json = {
      deviceUuid: uuid,
      notificationPublicKey: device.publicKey,
      apnsToken: token,
      apnsTopic: TOPIC,
      ...changes,
    }
    return request(`${pds.url}/v1/notifications/register`, { json, headers: bearer(account.accessJwt) })
  }

  leave(): Promise<Answer> {
    const { pds, account, uuid } = this
    const path = `/v1/notifications/register/${encodeURIComponent(uuid)}`
    return request(pds.url + path, { method: 'DELETE', headers: bearer(account.accessJwt) })
  }

  /** Returns what a push says, once it is known that one of the published keys of the server sealed it. */
  async read({ kid, enc, ct }: Sent): Promise<Record<string, unknown>> {
    const { body } = await request(`${this.pds.url}/v1/notifications/sender-keys`, {
      headers: bearer(this.account.accessJwt),
    })
    const key = (body.keys as { kid: number; publicKey: string }[]).find((each) => each.kid === kid)
    return JSON.parse(await this.device.open({ enc, ct }, key!.publicKey)) as Record<string, unknown>
  }
}

/** A phone of a new account, known to the relay. */
export async function phoneOf(pds: TestPds, name: string, changes: object = {}): Promise<Phone> {
  const phone = new Phone(pds, await createAccount(pds, name))
  const answer = await phone.register(changes)
  if (answer.status !== 200) throw new Error(`registration answered ${answer.status}`)
  await pds.runSteps()
  return phone
}

/** An event that the devices of an account are told of. Returns how many. */
export const tell = (
  pds: TestPds,
  { account }: Pick<Phone, 'account'>,
  changes: Partial<typeof message> = {},
  ttlSecs?: number,
): Promise<number> =>
  pds.ctx.db.transaction((tx) =>
    enqueuePush(pds.ctx, tx, account.did as Did, { ...message, ...changes }, ttlSecs === undefined ? {} : { ttlSecs }),
  )

export const handlesIn = async (pds: TestPds): Promise<Record<string, string | null>> =>
  Object.fromEntries((await pds.rows('push_registration')).map(({ owner, handle }) => [owner, handle]))

export const waitingSteps = async ({ ctx }: TestPds, kind: string): Promise<number> =>
  (await ctx.steps.summaries()).find((summary) => summary.kind === kind)!.waiting
