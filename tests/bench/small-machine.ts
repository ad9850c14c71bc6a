/**
 * How long requests take on the least machine that is supported (512 MB, one processor) on a busy hour. Linux only.
 *
 *     bun tests/bench/small-machine.ts [requests, 20000]
 *
 * The clients run on the other processors.
 */
import { busyHour } from '../support/busy-machine.ts'

const { millis, faults, kills, lacks, peakMiB, exports, backup } = await busyHour(Number(process.argv[2] ?? 20_000))
const sorted = millis.toSorted((a, b) => a - b)
const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!.toFixed(0)
console.log(
  `${millis.length} requests: p50 ${at(0.5)}, p90 ${at(0.9)}, p99 ${at(0.99)}, at most ${at(1)} ms; ` +
    `${exports} exports and uploads; at most ${peakMiB.toFixed(0)} MiB resident; ` +
    `${kills} killed; backup ended with ${backup.code}${lacks === null ? '' : `; no limit of memory: ${lacks}`}`,
)
for (const [fault, times] of faults) console.log(`${times} times: ${fault}`)
