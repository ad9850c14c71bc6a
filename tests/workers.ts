/**
 * Prints how many test files run at a time: two for each processor, because much of the suite's time is spent
 * waiting, for disks, for silent peers, for processes that end; fewer where memory is scarce.
 */
import { availableParallelism } from 'node:os'

/** What a process of tests takes, with its servers, its browser and its databases. */
const WORKER_BYTES = 1.5 * 1024 ** 3

const inMemory = Math.floor(Math.min(process.availableMemory(), process.constrainedMemory()) / WORKER_BYTES)
console.log(Math.max(availableParallelism(), Math.min(2 * availableParallelism(), inMemory)))
