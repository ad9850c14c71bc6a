/**
 * The door of addresses: which email addresses an account may have, and what a stranger may learn about addresses in
 * use.
 */
export { parseEmailAddress } from './email-address.ts'
export { emailNotSupported, isLastingAddress, requireLastingAddress } from './lasting-address.ts'
export { AddressTaken, withinRefusedAddresses } from './taken-address.ts'
