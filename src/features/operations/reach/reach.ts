/** The door of reach: why posts do, or do not, reach the network. */
export { accountReach } from './account-reach.ts'
export type { Link } from './link.ts'
export { relayLink, serverReach } from './server-reach.ts'
