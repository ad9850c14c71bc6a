/** How much memory another process uses, as Linux counts it. */
import { existsSync, readFileSync } from 'node:fs'

const KIBIBYTES_PER_MEBIBYTE = 1024
const PAUSE_MILLIS = 50

/** Now (`VmRSS`), or at most since it started (`VmHWM`), in MiB. 0 if it has ended. */
export function memoryMiB(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const path = `/proc/${pid}/status`
  const [, kibibytes = 0] =
    new RegExp(`${field}:\\s+(\\d+)`).exec(existsSync(path) ? readFileSync(path, 'utf8') : '') ?? []
  return Number(kibibytes) / KIBIBYTES_PER_MEBIBYTE
}

/**
 * The most that a process uses until it ends, in MiB. What the system reports at its end includes the memory of the
 * process that started it.
 */
export async function peakMiBOf({ pid, exited }: { pid: number; exited: Promise<number> }): Promise<number> {
  let peak = 0
  const look = setInterval(() => (peak = Math.max(peak, memoryMiB(pid, 'VmHWM'))), PAUSE_MILLIS)
  await exited
  clearInterval(look)
  return peak
}
