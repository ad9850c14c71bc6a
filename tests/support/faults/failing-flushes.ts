/** Loaded before a program: once it gets SIGUSR2, the disk reports an error whenever a file is flushed. */
import { EIO, refuseCalls, systemCalls } from './refused-calls.ts'

process.on('SIGUSR2', () => {
  refuseCalls(systemCalls.fdatasync, EIO)
  console.log('flushes fail')
})
