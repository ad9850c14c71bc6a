/** The signals on which a command ends in order. */
import { readFileSync, rmSync } from 'node:fs'
import { exitCodes } from './command.ts'

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

/**
 * Delete a file or a folder that holds what is private, and that nothing else would delete, if the command is stopped.
 * Returns what ends that.
 */
export function deleteIfInterrupted(path: string): () => void {
  const end = () => {
    rmSync(path, { recursive: true, force: true })
    process.exit(exitCodes.interrupted)
  }
  const signals = stopSignals()
  for (const signal of signals) process.on(signal, end)
  return () => signals.forEach((signal) => process.off(signal, end))
}

/** Only Linux says what a process ignores. Elsewhere: `nohup` leaves no process a terminal to write to. */
function isHangupIgnored(): boolean {
  if (process.platform !== 'linux') return !process.stdout.isTTY
  const ignored = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'
  return (BigInt(`0x${ignored}`) & HANGUP_BIT) !== 0n
}
