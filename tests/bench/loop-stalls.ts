/**
 * Preloaded into a server: how often, and for how long, its event loop was held. Answers its parent's every message.
 *
 * A timer looks every millisecond how much time of its processor the thread took since the last look. Others that keep
 * the processor from it do not count.
 */
const LOOK_MILLIS = 1

/** Of the thread that serves, in milliseconds of its processor. `over2` counts the looks that found more than two. */
export interface LoopStalls {
  /** Of all the time. */
  busyShare: number
  over2: number
  over4: number
  over8: number
  longest: number
}

const cpuMillis = () => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

let since = performance.now()
let busy = 0
let stalls: number[] = []
let last = cpuMillis()

setInterval(() => {
  const now = cpuMillis()
  busy += now - last
  if (now - last > 2) stalls.push(now - last)
  last = now
}, LOOK_MILLIS).unref()

process.on('message', () => {
  const over = (millis: number) => stalls.filter((stall) => stall > millis).length
  const busyShare = busy / (performance.now() - since)
  const found: LoopStalls = {
    busyShare: Number(busyShare.toFixed(3)),
    over2: over(2),
    over4: over(4),
    over8: over(8),
    longest: Number(Math.max(0, ...stalls).toFixed(1)),
  }
  since = performance.now()
  busy = 0
  stalls = []
  process.send!(found)
})
