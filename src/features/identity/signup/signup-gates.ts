/** Gates for sign-ups, which operators can open and close while the server runs. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { DAY_MILLIS, DAY_SECS, HOUR_SECS } from '../../../base/durations.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { Refusal } from '../../../http/errors.ts'
import { limitRefusal } from '../../../http/limit-headers.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { serverSecret } from '../../../platform/secrets/vault.ts'
import { networkOf } from '../../../protocol/ip-address.ts'
import { wireTime, type Millis } from '../../../protocol/identifiers.ts'
import { workBits, workDigest } from '../../../protocol/proof-of-work.ts'
import { useOnce } from '../../access/tokens/tokens.ts'
import {
  deleteSignupPlace,
  deleteSignupPlaces,
  insertSignupPlace,
  signupsFrom,
  type SignupPlace,
} from './signup-place-store.ts'

export type { SignupPlace } from './signup-place-store.ts'

/**
 * Count a sign-up, in the transaction that claims its names, so that concurrent sign-ups cannot exceed the limit.
 * Returns the place to give back if the sign-up creates no account; null if nothing was counted. Throws
 * `RateLimitExceeded` if too many accounts were made from the range of addresses in the last day.
 */
export async function passRangeGate(exchange: Exchange, tx: Tx): Promise<SignupPlace | null> {
  const { ctx, ip, isNear } = exchange
  const most = ctx.config.signup.accountsPerRangeAndDay
  const network = networkOf(ip)
  if (most === 0 || isNear || network === null) return null
  const now = ctx.clock.now()
  await deleteSignupPlaces(tx, now - DAY_MILLIS)
  const { count, newest } = await signupsFrom(tx, network)
  if (count >= most)
    throw limitRefusal(
      exchange,
      { limit: most, windowSecs: DAY_SECS },
      'Too many accounts were created from your network today. Try again tomorrow',
    )
  const place = { network, at: Math.max(now, newest + 1) }
  await insertSignupPlace(tx, place)
  return place
}

/**
 * Take back the count of a sign-up that created no account, so that a person who repeats a sign-up during an outage
 * counts once.
 */
export const giveBackPlace = ({ db }: Pick<Context, 'db'>, place: SignupPlace): Promise<number> =>
  deleteSignupPlace(db, place)

/** The answer and the proof of work that a sign-up request contains. */
export interface GateAnswers {
  answer: string | null
  /** The challenge of this server, and the nonce that the client found for it and its email address. */
  proof: { challenge: string; nonce: string } | null
}

export const noAnswers: GateAnswers = { answer: null, proof: null }

const MAX_ANSWER_CHARS = 300
const MAX_CHALLENGE_CHARS = 100
const MAX_NONCE_CHARS = 40

/** What a sign-up request has to contain now; null if it is not required. */
export interface SignupNeeds {
  question: string | null
  proofOfWork: { challenge: string; bits: number; expiresAt: string } | null
}

/** Bits of work that a sign-up requires; 0 if the server requires invite codes, which are a better proof. */
const neededBits = ({ config }: Context): number => (config.inviteCodeRequired ? 0 : config.signup.proofOfWorkBits)

export async function signupNeeds(ctx: Context): Promise<SignupNeeds> {
  const bits = neededBits(ctx)
  const { challenge, expiresAt } = bits === 0 ? { challenge: '', expiresAt: 0 } : await newChallenge(ctx)
  return {
    question: ctx.config.signup.question,
    proofOfWork: bits === 0 ? null : { challenge, bits, expiresAt: wireTime(expiresAt) },
  }
}

/**
 * Returns the proof of work that the sign-up spends, which is bound to the email address; null if none is needed.
 * Throws `AnswerRequired` or `ProofOfWorkRequired`.
 */
export async function passAnswerGates(
  ctx: Context,
  email: string,
  { answer, proof }: GateAnswers,
): Promise<UnspentProof | null> {
  const { question, answers } = ctx.config.signup
  if (question !== null && !(answer !== null && isAccepted(answer, answers)))
    throw new Refusal(
      400,
      'AnswerRequired',
      answer === null || answer.trim() === ''
        ? `The question of this server needs an answer: ${question} Apps that cannot ask it sign up at ${ctx.config.publicUrl}/account/sign-up`
        : 'The question of this server has another answer',
    )
  const bits = neededBits(ctx)
  if (bits === 0) return null
  if (proof === null || !(await isProven(ctx, email, proof, bits))) throw workRequired(ctx)
  return {
    digest: workDigest({ ...proof, subject: email }).toString('base64url'),
    expiresAt: Number.parseInt(proof.challenge, 10) * 1000,
  }
}

/**
 * A sufficient proof of work. It is spent, because the email address alone does not limit it to one account: an account
 * may give up its address, and another could use the proof again.
 */
export interface UnspentProof {
  digest: string
  expiresAt: Millis
}

/** Spend a proof, in the transaction that claims the names. Throws `ProofOfWorkRequired` if it was spent before. */
export async function spendProof(ctx: Context, tx: Tx, { digest, expiresAt }: UnspentProof): Promise<void> {
  if (!(await useOnce(tx, 'sign-up-proof', digest, expiresAt))) throw workRequired(ctx)
}

const workRequired = (ctx: Context) =>
  new Refusal(
    400,
    'ProofOfWorkRequired',
    `The proof of work is missing, used, too old or too small. GET /v1/sign-up has a challenge of ${neededBits(ctx)} bits; browsers sign up at ${ctx.config.publicUrl}/account/sign-up`,
  )

const folded = (text: string): string => text.normalize('NFKC').replaceAll(/\s+/g, ' ').trim().toLowerCase()

const isAccepted = (answer: string, accepted: readonly string[]): boolean =>
  answer.length <= MAX_ANSWER_CHARS && accepted.some((one) => folded(one) === folded(answer))

async function isProven(
  ctx: Context,
  subject: string,
  { challenge, nonce }: NonNullable<GateAnswers['proof']>,
  bits: number,
): Promise<boolean> {
  if (challenge.length > MAX_CHALLENGE_CHARS || nonce.length > MAX_NONCE_CHARS) return false
  return workBits({ challenge, subject, nonce }) >= bits && (await isOurs(ctx, challenge))
}

// Challenges: the time at which one expires, with a MAC of this server. Nothing is stored, and all nodes accept them.

const CHALLENGE_SECS = HOUR_SECS

const macKey = perContext(({ db, vault }) => serverSecret(db, vault, 'signup-challenge'))

const macOf = async (ctx: Context, expires: string): Promise<string> =>
  createHmac('sha256', await macKey(ctx))
    .update(expires)
    .digest('base64url')

async function newChallenge(ctx: Context): Promise<{ challenge: string; expiresAt: number }> {
  const expiresSecs = Math.floor(ctx.clock.now() / 1000) + CHALLENGE_SECS
  return {
    challenge: `${expiresSecs}.${await macOf(ctx, String(expiresSecs))}`,
    expiresAt: expiresSecs * 1000,
  }
}

async function isOurs(ctx: Context, challenge: string): Promise<boolean> {
  const [, expires = '', mac = ''] = /^(\d{1,12})\.([\w-]{43})$/.exec(challenge) ?? []
  if (expires === '' || !timingSafeEqual(Buffer.from(mac), Buffer.from(await macOf(ctx, expires)))) return false
  const left = Number(expires) - Math.floor(ctx.clock.now() / 1000)
  // A challenge with more time left than a new one was made while the clock was wrong.
  return left > 0 && left <= CHALLENGE_SECS
}
