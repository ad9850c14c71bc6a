/** A link of the chain over which a post reaches the network: its state, and what to do if it is broken. */
export interface Link {
  name: string
  /** `unknown`: another service did not say. */
  state: 'ok' | 'warning' | 'fault' | 'unknown'
  text: string
  /** What the operator can do; null if there is nothing to do. */
  remedy: string | null
  /** What the account holder can do; null if only the operator can do something. */
  holderRemedy: string | null
}

type State = Exclude<Link['state'], 'ok'>

export const good = (name: string, text: string): Link => ({
  name,
  state: 'ok',
  text,
  remedy: null,
  holderRemedy: null,
})

export const broken = (
  name: string,
  state: State,
  text: string,
  remedy: string,
  holderRemedy: string | null = null,
): Link => ({ name, state, text, remedy, holderRemedy })
