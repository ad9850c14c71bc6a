import { accountCommand, nameOf } from '../account/operator-accounts.ts'
import { facts, table } from '../report.ts'

interface TestPushes {
  nodeId: string | null
  relay: string
  devices: { deviceId: string; steps: { step: string; detail: string }[]; outcome: string }[]
}

export const pushTestCommand = accountCommand({
  summary: 'Send a push notification to every device of an account.',
  details: `Prints each step: connecting to the relay, enrolling if the relay requires it, sealing, and the relay's response. Sends
at once, ahead of the queue, even while pushes are paused because the relay refused to enroll this server. "delivered"
means that Apple accepted the push, not that the device showed it. A device that chose pings is woken without content.`,
  async run({ server, account }) {
    const sent = await server.post<TestPushes>('/v1/admin/notifications/test', { did: account.did })
    const { devices } = sent
    const rows = devices.flatMap(({ deviceId, steps, outcome }) => [
      ...steps.map(({ step, detail }) => [deviceId, step, detail]),
      [deviceId, 'outcome', outcome],
    ])
    const ends = facts({ endpoint: sent.nodeId ?? 'none', relay: sent.relay })
    const list =
      devices.length === 0
        ? `No device of ${nameOf(account)} has registered.`
        : table(['DEVICE', 'STEP', 'RESULT'], rows)
    return {
      value: sent,
      text: `${ends}\n\n${list}`,
      failed: devices.length === 0 || devices.some(({ outcome }) => outcome !== 'delivered'),
    }
  },
})
