/** Errors that keep an agent from acting, with messages for people. */
import { OperatorError } from '../base/operator-error.ts'
import { inOneLine, ServerRefusal } from '../base/server-request.ts'
import type { ClaimCode } from './agent-contents.ts'

/** Longest list of scopes in a message; longer ones are cut off. */
const MAX_SCOPES_CHARS = 2000

/** The account holder has not confirmed the agent, or has to do it again. */
export class NotConfirmed extends OperatorError {
  constructor(
    /** The code to confirm; null if it has expired, or there never was one. */
    readonly claim: ClaimCode | null,
  ) {
    super(
      claim === null
        ? 'the agent is not confirmed: register it, and let the account holder enter the code'
        : codeWords(claim),
    )
  }
}

/** The account holder or the server has revoked the agent. */
export class AgentEnded extends OperatorError {}

export const codeWords = ({ userCode, verificationUri, expiresAt }: ClaimCode): string =>
  `the agent is not confirmed yet: open ${verificationUri}, sign in, and enter the code ${userCode} before ${expiresAt}`

export const scopeWords = (scopes: readonly string[]): string => inOneLine(scopes.join(' '), MAX_SCOPES_CHARS)

/** Whether the token has expired or is invalid, for which XRPC methods answer 400 or 401. */
export const isTokenOver = (error: unknown): boolean =>
  error instanceof ServerRefusal && (error.status === 401 || ['ExpiredToken', 'InvalidToken'].includes(error.code))

export const isRefused = (error: unknown, ...codes: string[]): error is ServerRefusal =>
  error instanceof ServerRefusal && codes.includes(error.code)

export const ended = (error: ServerRefusal) =>
  new AgentEnded(
    `the agent may no longer act for the account, until its holder confirms a new registration (${error.message})`,
    {
      cause: error,
    },
  )
