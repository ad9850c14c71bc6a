/**
 * Runs a program that cannot make hard links, as on a file system that has none: `bun without-links.ts PROGRAM WORDS…`.
 */
import { dlopen, FFIType, ptr } from 'bun:ffi'
import { EPERM, refuseCalls, systemCalls } from './refused-calls.ts'

refuseCalls(systemCalls.link, EPERM)
const { symbols } = dlopen('libc.so.6', { execv: { args: [FFIType.ptr, FFIType.ptr], returns: FFIType.i32 } })
const words = process.argv.slice(2).map((word) => Buffer.from(`${word}\0`))
const list = new BigUint64Array([...words.map((word) => BigInt(ptr(word))), 0n])
symbols.execv(ptr(words[0]!), ptr(list))
throw new Error(`${process.argv[2]} cannot be run`)
