/** The parts of the WebAuthn library that are used. A module of its own, so that the first ceremony loads them. */
export { verifyAuthenticationResponse, verifyRegistrationResponse } from '@simplewebauthn/server'
export { decodeAttestationObject } from '@simplewebauthn/server/helpers'
