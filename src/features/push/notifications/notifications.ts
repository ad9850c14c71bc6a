/**
 * The door of notifications: pushes to the devices of account holders.
 *
 * A push is sealed for one device and passed on by a relay that cannot read it, to which the QUIC endpoint talks
 * (`iroh`). Nothing that a person waits for waits for the relay: whatever it is told is a durable step.
 */
export { enqueuePush } from './push-steps.ts'
export { registrationsOf as pushDevicesOf, type PushRegistration } from './push-registration-store.ts'
export { removeRegistration } from './push-registrations.ts'
export { relayStatus } from './queue-status.ts'
export { skipSenderKeyNumbers } from './sender-key-store.ts'
