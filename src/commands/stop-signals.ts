/** The signals on which a command ends in order. */
import { readFileSync } from 'node:fs'

const HANGUP_BIT = 1n

/**
 * SIGHUP, which the system sends when a terminal is closed, is one of them unless this process was started to ignore
 * it, as `nohup` starts it: a handler would end that.
 */
export const stopSignals = (): NodeJS.Signals[] => [
  'SIGTERM',
  'SIGINT',
  ...(isHangupIgnored() ? [] : ['SIGHUP' as const]),
]

/** Only Linux says what a process ignores. Elsewhere: `nohup` leaves no process a terminal to write to. */
function isHangupIgnored(): boolean {
  if (process.platform !== 'linux') return !process.stdout.isTTY
  const ignored = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'
  return (BigInt(`0x${ignored}`) & HANGUP_BIT) !== 0n
}
