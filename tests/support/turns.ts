/**
 * Two nodes behind one port: each gets every other request, whoever sends it.
 *
 * What a test does to `pds.ctx` it does to one of the nodes, and each node counts and keeps some things for itself:
 * documents of others, the last of a handful of requests that a limit leaves, metrics. Tests of these say `atOneNode`,
 * or start a server that is `alone`.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { App, Overrides } from '../../src/app.ts'
import type { Dispatcher } from '../../src/http/dispatcher.ts'
import { listen, type Listener } from '../../src/http/listener.ts'

/** Servers of which one node gets all requests, by their folder. */
const pinned = new Set<string>()

/**
 * Until the end of the block, one of the nodes gets all requests: the one whose context the test has. `why`: each node
 * counts or keeps for itself what is tested, or the test replaces a part of that node.
 */
export function atOneNode({ dataDir }: { dataDir: string }, why: string): Disposable & { why: string } {
  pinned.add(dataDir)
  return { why, [Symbol.dispose]: () => pinned.delete(dataDir) }
}

/** Folder of the second node, in that of the first. */
export const OTHER_NODE = 'other-node'

/**
 * The second node has its data directory within that of the first, and no port. The first one, whose context it is,
 * starts first: it does what one node does for all, such as opening the QUIC endpoint.
 */
export async function turnAbout(
  start: (dataDir: string, more: Overrides) => Promise<App>,
  dataDir: string,
): Promise<App> {
  const otherDir = join(dataDir, OTHER_NODE)
  mkdirSync(otherDir, { recursive: true })
  let other: Dispatcher | null = null
  let turn = 0
  const first = await start(dataDir, {
    sharesDatabase: true,
    listen: (config, dispatcher) =>
      listen(config, {
        ...dispatcher,
        dispatch: (request, peer) =>
          (pinned.has(dataDir) || turn++ % 2 === 0 ? dispatcher : (other ?? dispatcher)).dispatch(request, peer),
      }),
  })
  try {
    const second = await start(otherDir, {
      sharesDatabase: true,
      listen: (_, dispatcher) => {
        other = dispatcher
        return portless(dispatcher)
      },
    })
    // What a node does by itself is waited for and done at both, as the test does not know which of them was asked.
    const { background, steps } = first.ctx
    const [settled, workOff] = [background.settled.bind(background), steps.workOff.bind(steps)]
    background.settled = async () => void (await Promise.all([settled(), second.ctx.background.settled()]))
    steps.workOff = async () => {
      await workOff()
      await second.ctx.steps.workOff()
    }
    const stop = async () => {
      await first.stop()
      await second.stop()
    }
    return { ...first, stop }
  } catch (error) {
    await first.stop()
    throw error
  }
}

const portless = (dispatcher: Dispatcher): Listener => ({ url: '', port: 0, stop: () => dispatcher.stop(0) })
