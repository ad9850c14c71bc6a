/**
 * Codes of authenticator apps. A code works once: the newest accepted time step is stored, and no code of that or an
 * earlier step is accepted again. Clocks may differ by one step.
 *
 * Source: RFC 6238, with what all apps understand: SHA-1, six digits, steps of 30 seconds.
 */
import { randomBytes } from 'node:crypto'
import { HOUR_MILLIS } from '../../../base/durations.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { MAX_SKEW_MILLIS } from '../../../platform/running/clock.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import { findTotp, putTotp, useStep, type StoredTotp } from './totp-store.ts'

/** RFC 4226, section 4, recommends 160 bits. */
const SECRET_BYTES = 20
const STEP_SECS = 30
const MAX_DRIFT_STEPS = 1
const DIGITS = 6
/** How long an app may take to be set up. The secret of a set-up that was left open must not confirm an app later. */
const SETUP_MILLIS = HOUR_MILLIS

type Library = typeof import('otpauth/dist/otpauth.node.mjs')

/** Loaded on first use. */
const library = (): Promise<Library> => import('otpauth/dist/otpauth.node.mjs')

/** What a person enters into a new app. */
export interface TotpSetup {
  /** `otpauth://totp/…`, for a QR code. */
  uri: string
  /** The secret in base32, in groups of four, to be typed. */
  secret: string
}

/** Begin to set up an app, which counts once a code of it was entered. Calls `begin` in the same transaction. */
export async function setUpTotp(
  { db, clock, config, vault }: Context,
  { did, handle }: Account,
  begin: (tx: Tx) => Promise<void>,
): Promise<TotpSetup> {
  const { Secret, TOTP } = await library()
  const bytes = randomBytes(SECRET_BYTES)
  await db.transaction(async (tx) => {
    await begin(tx)
    await putTotp(tx, did, vault.wrap(bytes), clock.now())
  })
  const secret = new Secret({ buffer: Uint8Array.from(bytes).buffer })
  const issuer = new URL(config.publicUrl).host
  return {
    uri: new TOTP({ issuer, label: handle ?? did, secret, digits: DIGITS, period: STEP_SECS }).toString(),
    secret: secret.base32.replace(/(.{4})(?=.)/g, '$1 '),
  }
}

/** A set-up that began in the future, by a clock that was wrong then, has ended. */
export const isBeingSetUp = ({ confirmedAt, createdAt }: StoredTotp, now: Millis): boolean =>
  confirmedAt === null && createdAt > now - SETUP_MILLIS && createdAt <= now + MAX_SKEW_MILLIS

/** Whether a text has the form of a code. */
export const isTotpCode = (text: string): boolean => /^\d{6}$/.test(text)

/**
 * Returns a function that spends a code of the account's app. It returns false if the code is wrong or was used before,
 * and runs in a transaction, which must not wait for the library to load. `counts` says which apps count.
 */
export async function totpSpender(
  { clock, vault }: Pick<Context, 'clock' | 'vault'>,
  counts: (stored: StoredTotp) => boolean,
): Promise<(tx: Tx, did: Did, code: string) => Promise<boolean>> {
  const { Secret, TOTP } = await library()
  const stepOf = (secret: Uint8Array, token: string, now: Millis): number | null => {
    const totp = new TOTP({ secret: new Secret({ buffer: Uint8Array.from(secret).buffer }), digits: DIGITS })
    const drift = totp.validate({ token, timestamp: now, window: MAX_DRIFT_STEPS })
    return drift === null ? null : totp.counter({ timestamp: now }) + drift
  }
  return async (tx, did, code) => {
    const stored = await findTotp(tx, did)
    if (stored === null || !counts(stored) || !isTotpCode(code)) return false
    const now = clock.now()
    const step = stepOf(vault.unwrap(stored.secretWrapped), code, now)
    if (step === null || step <= stored.lastStep) return false
    await useStep(tx, did, step, now)
    return true
  }
}
