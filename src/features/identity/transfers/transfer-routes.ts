/** The three requests of a transfer. Wallets spell some members in two ways. */
import { Type } from '@sinclair/typebox'
import { route } from '../../../http/endpoint.ts'
import { authenticationRequired, Refusal } from '../../../http/errors.ts'
import { charge } from '../../../http/limiting.ts'
import { readJson } from '../../../http/json-input.ts'
import { wireTime } from '../../../protocol/identifiers.ts'
import { wallet } from '../../access/auth/auth.ts'
import { transferParty } from './transfer-party.ts'
import { deviceMembers, requireDeviceKey } from '../../access/wallet-devices/wallet-devices.ts'
import { acceptTransfer, beginTransfer, completeTransfer } from './transferring.ts'

const codePattern = /^[A-Z0-9]{6}$/

const conflict = (message: string) => new Refusal(409, 'Conflict', message)
const invalidClaim = (message: string) => new Refusal(400, 'InvalidClaim', message)
const invalidCode = () => invalidClaim('The transfer code is unknown, or no longer valid')

const text = Type.Optional(Type.String())

/** Returns the first spelling that was given. Throws `InvalidRequest` (422) if none was. `name` is the usual one. */
function firstSpelling(name: string, ...spellings: (string | undefined)[]): string {
  const given = spellings.find((spelling) => spelling !== undefined)
  if (given === undefined) throw new Refusal(422, 'InvalidRequest', `/${name}: Expected string`)
  return given
}

export const transferRoutes = [
  route('POST', '/v1/transfer/initiate', {
    auth: wallet,
    async handler(call) {
      const begun = await beginTransfer(call, call.caller.did)
      if (!begun) throw conflict('A transfer of this account is in progress')
      return { transferId: begun.id, transferCode: begun.code, expiresAt: wireTime(begun.expiresAt), status: 'pending' }
    },
  }),

  route('POST', '/v1/transfer/accept', {
    limit: 'transferAccept',
    async handler(call) {
      const given = await readJson(
        call.body,
        Type.Object({
          transferCode: text,
          transfer_code: text,
          code: text,
          devicePublicKey: text,
          device_public_key: text,
          platform: deviceMembers.platform,
        }),
      )
      const code = firstSpelling('transferCode', given.transferCode, given.transfer_code, given.code)
        .trim()
        .toUpperCase()
      const publicKey = firstSpelling('devicePublicKey', given.devicePublicKey, given.device_public_key)
      requireDeviceKey(publicKey)
      if (!codePattern.test(code)) throw invalidCode()
      await charge(call, { name: 'transferAcceptTotal', key: 'all', from: call.client })
      const acceptance = await acceptTransfer(call, code, { publicKey, platform: given.platform as string })
      if (acceptance.ok) {
        const { transferId, deviceId, deviceToken } = acceptance
        return { transferId, status: 'accepted', deviceId, deviceToken }
      }
      if (acceptance.fault === 'already accepted') throw conflict('A device has accepted this transfer')
      throw invalidCode()
    },
  }),

  route('POST', '/v1/transfer/complete', {
    auth: transferParty,
    async handler(call) {
      const given = await readJson(call.body, Type.Object({ transferId: text, transfer_id: text }))
      const transferId = firstSpelling('transferId', given.transferId, given.transfer_id)
      switch (await completeTransfer(call, call.caller, transferId)) {
        case 'complete':
          return { transferId, status: 'complete' }
        case 'pending':
          throw conflict('No device has accepted this transfer yet')
        case 'ended':
          throw invalidClaim('There is no such transfer, or it has ended')
        case 'stranger':
          throw authenticationRequired('The token has no part in this transfer')
      }
    },
  }),
]
