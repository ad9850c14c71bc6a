/**
 * Prints how many test files run at a time: two for each processor, because half of the suite's time is spent waiting,
 * for disks, for silent peers, for processes that end.
 */
import { availableParallelism } from 'node:os'

console.log(2 * availableParallelism())
