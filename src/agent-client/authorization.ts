/**
 * How an assistant gets the consent of the account holder: what it is told to show, and when it asks without being told
 * to.
 */
import { SingleFlight } from '../base/single-flight.ts'
import type { Agent } from './agent.ts'
import { AgentEnded, codeWords, NotConfirmed, scopeWords } from './agent-faults.ts'
import type { ClaimCode } from './agent-contents.ts'
import { OperatorError } from '../base/operator-error.ts'

const THEN_WAIT = 'Show this to the person, then call "authorize", which waits for the confirmation.'

export class Authorization {
  readonly #agent: Agent
  readonly #registrations = new SingleFlight<'register', ClaimCode | null>()

  constructor(agent: Agent) {
    this.#agent = agent
  }

  /**
   * Ask for the consent, or wait for it if it was already asked for. A revoked agent asks again only here, so that a
   * holder who revoked it is asked again only if a person wants that.
   */
  async authorize(waitMillis: number): Promise<string> {
    try {
      await this.#agent.access()
    } catch (error) {
      if (error instanceof NotConfirmed && error.claim !== null) return this.#waited(waitMillis)
      if (!(error instanceof AgentEnded) && !(error instanceof NotConfirmed)) throw error
      const claim = await this.#registered()
      if (claim !== null) return asked(claim)
    }
    return this.#confirmed()
  }

  async #waited(millis: number): Promise<string> {
    try {
      await this.#agent.wait(millis)
    } catch (error) {
      if (!(error instanceof NotConfirmed)) throw error
      return error.claim === null
        ? 'The code has expired without being entered. Call "authorize" for a new one.'
        : asked(error.claim)
    }
    return this.#confirmed()
  }

  async #confirmed(): Promise<string> {
    const [did, { scopes }] = [await this.#agent.did(), await this.#agent.access()]
    return `The account holder has confirmed: you act for ${did} with the scopes ${scopeWords(scopes)}.`
  }

  #registered = (): Promise<ClaimCode | null> => this.#registrations.run('register', () => this.#agent.register())

  /**
   * Run a tool. If the person's consent is missing or was withdrawn, throws an OperatorError that says what to tell the
   * person.
   */
  async explain<Result>(run: () => Promise<Result>): Promise<Result> {
    try {
      return await run()
    } catch (error) {
      if (error instanceof AgentEnded)
        throw new OperatorError(
          `${sentence(error.message)} Do not retry on your own. Tell the person. If they want it, "authorize" requests a new confirmation.`,
          { cause: error },
        )
      if (!(error instanceof NotConfirmed)) throw error
      const claim = error.claim ?? (await this.#registered())
      if (claim === null) return run()
      throw new OperatorError(asked(claim), { cause: error })
    }
  }
}

const asked = (claim: ClaimCode): string => `${sentence(codeWords(claim))} ${THEN_WAIT}`

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
