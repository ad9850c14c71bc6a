/**
 * The door of transfers: moving an account from one wallet to another device.
 *
 * The wallet begins a transfer and shows a code. Another device accepts it with the code, which gives the device a
 * token (`wallet-devices`). Either of them completes it: every session of the account ends, and so do the tokens of its
 * other devices. The transfer does not change the identity: the wallet signs an operation for that.
 */
export { cancelTransfer, revokeTransferDevice, runningTransfer } from './transferring.ts'
export { type Transfer } from './transfer-store.ts'
