/** Devices that ask for pushes, and the pushes that wait to be sent to them. */
import { expect } from 'bun:test'
import type { TestAccount } from './account.ts'
import { bearer, request } from './http.ts'
import type { TestPds } from '../servers/pds.ts'
import { PushDevice } from './push-device.ts'

export const RELAY = 'ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c'

export async function registerDevices(
  pds: TestPds,
  { accessJwt, did }: TestAccount,
  names: readonly string[],
  apnsTopic = 'org.example.wallet',
): Promise<void> {
  for (const name of names) {
    const apnsToken = Buffer.from(`${did} ${name}`).toString('hex').slice(0, 200)
    const json = { deviceUuid: name, notificationPublicKey: new PushDevice().publicKey, apnsToken, apnsTopic }
    const answer = await request(`${pds.url}/v1/notifications/register`, { json, headers: bearer(accessJwt) })
    expect(answer).toMatchObject({ status: 200 })
  }
}

export interface QueuedPush {
  device: { owner: string; deviceId: string }
  message: { type: string; title: string; body: string; data: Record<string, string | null> }
  /** From then on it is not sent any more. */
  goodUntil: number
}

/** The pushes that wait, the oldest first. */
export async function queuedPushes(pds: TestPds): Promise<QueuedPush[]> {
  const rows = await pds.rows('step', { kind: 'push' })
  return rows.map((row) => JSON.parse(Buffer.from(pds.ctx.vault.unwrap(row.payload_wrapped)).toString()))
}
