/** The file of a wallet, encrypted with a passphrase. */
import { requireLength, SealedFile } from '../base/sealed-file.ts'
import { WALLET_FORMAT, type WalletContents } from './wallet-contents.ts'

const walletKind = { name: 'wallet', format: WALLET_FORMAT }

export type WalletFile = SealedFile<WalletContents>

export const WalletFile = {
  exists: SealedFile.exists,

  /** Prepares a wallet file that does not exist yet. Throws OperatorError if the passphrase is too short. */
  fresh(path: string, passphrase: string, workFactor: number): WalletFile {
    requireLength(passphrase)
    return new SealedFile(path, walletKind, { passphrase, workFactor })
  },

  /** Throws OperatorError if there is no file, if the passphrase does not open it, or if a later version wrote it. */
  async open(
    path: string,
    passphrase: string,
    workFactor: number,
  ): Promise<{ file: WalletFile; contents: WalletContents }> {
    const file = new SealedFile<WalletContents>(path, walletKind, { passphrase, workFactor })
    return { file, contents: await file.read() }
  },
}
