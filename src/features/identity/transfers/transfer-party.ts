/**
 * The guard for completing a transfer: admits the wallet that began it, by its session, or the device that accepted it.
 * Both present opaque tokens of the same form, so the guard looks for both. The handler checks that the caller takes
 * part in the transfer.
 */
import type { Exchange, Guard } from '../../../http/endpoint.ts'
import { authenticationRequired, authMissing, Refusal } from '../../../http/errors.ts'
import { taking } from '../../../http/credential-guards.ts'
import { walletKind, type WalletCaller } from '../../access/callers/callers.ts'
import { deviceCredential, type DeviceCaller } from '../../access/wallet-devices/wallet-devices.ts'

export type TransferParty = WalletCaller | DeviceCaller

function refuseStrangers(): never {
  throw authenticationRequired()
}

const wallet = taking<TransferParty>([walletKind], refuseStrangers, { refusesTakendown: true })
const device = taking<TransferParty>([deviceCredential], refuseStrangers)

/**
 * Throws `AuthMissing` without an `Authorization` header, and `AuthenticationRequired` for a token that belongs to
 * neither.
 */
export const transferParty: Guard<TransferParty> = {
  personal: true,
  takes: [...wallet.takes, ...device.takes],
  async check(exchange: Exchange) {
    if (!exchange.request.headers.has('authorization')) throw authMissing(exchange.ctx.config.publicUrl)
    try {
      return await wallet.check(exchange)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return await device.check(exchange)
    }
  },
}
