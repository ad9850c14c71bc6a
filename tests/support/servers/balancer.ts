/** A load balancer on loopback: each request goes to the next node that says at `/readyz` that it is ready. */
import { startReverseProxy, type ReverseProxy } from './reverse-proxy.ts'
import { until } from '../until.ts'

const LOOK_MILLIS = 200

export interface Balancer extends ReverseProxy {
  /** The nodes that receive requests now. */
  readonly ready: readonly string[]
  /** Wait until so many nodes are ready. */
  untilReady(count: number): Promise<void>
}

/** `nodes` are their addresses; they need not run yet. Its own name is `localhost`. */
export async function startBalancer(nodes: readonly string[]): Promise<Balancer> {
  let ready: string[] = []
  let turn = 0
  const look = async () => {
    const states = await Promise.all(
      nodes.map((node) =>
        fetch(`${node}/readyz`).then(
          ({ ok }) => ok,
          () => false,
        ),
      ),
    )
    ready = nodes.filter((_, i) => states[i])
  }
  const proxy = await startReverseProxy(() => ready[turn++ % ready.length] ?? nodes[0]!)
  const looking = setInterval(() => void look(), LOOK_MILLIS)
  return {
    url: proxy.url,
    get ready() {
      return ready
    },
    untilReady: (count) => until(() => ready.length >= count),
    async [Symbol.asyncDispose]() {
      clearInterval(looking)
      await proxy[Symbol.asyncDispose]()
    },
  }
}
