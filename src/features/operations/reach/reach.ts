/** The door of reach: why posts do, or do not, reach the network. */
export { relayLink } from './server-reach.ts'
