/** An account whose first rotation key is that of a wallet, without the ceremony. */
import { formatDidKey, signingKey } from '../../../src/protocol/keys.ts'
import type { WalletContents } from '../../../src/wallet/wallet-contents.ts'
import { freshContents } from '../../../src/wallet/wallet.ts'
import type { TestAccount } from './account.ts'
import type { TestPds } from '../servers/pds.ts'
import { sovereignAccount } from './wallet.ts'
import { WalletUser } from './wallet-user.ts'

export interface WalletHolder extends Disposable {
  user: WalletUser
  account: TestAccount
  /** What the wallet held at first. */
  contents: WalletContents
}

export async function walletHolder(
  pds: TestPds,
  directory: string,
  name: string,
  input: Record<string, unknown> = {},
): Promise<WalletHolder> {
  const user = new WalletUser(() => pds.clock.now())
  const fresh = freshContents(pds.url, directory)
  const key = signingKey('p256', Buffer.from(fresh.deviceKey, 'hex'))
  const account = await sovereignAccount(pds, name, input, { key, did: formatDidKey(key.publicKey) })
  const contents = { ...fresh, did: account.did, handle: account.handle }
  await user.keep(contents)
  return { user, account, contents, [Symbol.dispose]: () => user[Symbol.dispose]() }
}
