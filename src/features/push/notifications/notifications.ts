/**
 * The door of notifications: pushes to the devices of account holders.
 *
 * A push is sealed for one device. A relay, which this server reaches through the QUIC endpoint (`iroh`), passes it on
 * and cannot read it. No request of a person waits for the relay: everything that is sent to it is a durable step.
 */
export { enqueuePush } from './push-steps.ts'
export { registrationsOf as pushDevicesOf, type PushRegistration } from './push-registration-store.ts'
export { removeRegistration } from './push-registrations.ts'
export { relayStatus } from './queue-status.ts'
export { skipSenderKeyNumbers } from './sender-key-store.ts'
