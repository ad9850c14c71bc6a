/**
 * Two nodes behind one port: each gets every other request, whoever sends it.
 *
 * What a test does to `pds.ctx` it does to one of the nodes, so tests that replace its parts fail here, and so do tests
 * that count what each node does for itself: fetches of others' documents, or the last of a handful of requests that a
 * limit leaves. All others are to pass.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { App, Overrides } from '../../src/app.ts'
import type { Dispatcher } from '../../src/http/dispatcher.ts'
import { listen, type Listener } from '../../src/http/listener.ts'

/** The second node has its data directory within that of the first, and no port. The context is that of the first. */
export async function turnAbout(
  start: (dataDir: string, more: Overrides) => Promise<App>,
  dataDir: string,
): Promise<App> {
  const otherDir = join(dataDir, 'other-node')
  mkdirSync(otherDir, { recursive: true })
  let other: Dispatcher | null = null
  let turn = 0
  const second = await start(otherDir, {
    sharesDatabase: true,
    listen: (_, dispatcher) => {
      other = dispatcher
      return portless(dispatcher)
    },
  })
  try {
    const first = await start(dataDir, {
      sharesDatabase: true,
      listen: (config, dispatcher) =>
        listen(config, {
          ...dispatcher,
          dispatch: (request, peer) => (turn++ % 2 === 0 ? dispatcher : other!).dispatch(request, peer),
        }),
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
    await second.stop()
    throw error
  }
}

const portless = (dispatcher: Dispatcher): Listener => ({ url: '', port: 0, stop: () => dispatcher.stop(0) })
