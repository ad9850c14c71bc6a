/**
 * Runs a program that cannot make hard links, as on a file system that has none: `bun without-links.ts PROGRAM WORDS…`.
 * A filter of the kernel refuses the two system calls, for the program and all that it starts. Linux on x64 and arm64.
 */
import { dlopen, FFIType, ptr } from 'bun:ffi'

const PR_SET_SECCOMP = 22
const PR_SET_NO_NEW_PRIVS = 38
const SECCOMP_MODE_FILTER = 2
const REFUSED = 0x00050000 + 1 // SECCOMP_RET_ERRNO with EPERM
const ALLOWED = 0x7fff0000
/** Numbers of `link` and `linkat`. */
const calls = { x64: [86, 265], arm64: [37] }[process.arch as 'x64' | 'arm64']

/** An instruction of the filter (`struct sock_filter`). */
const step = (code: number, ifTrue: number, ifFalse: number, value: number): number[] => [
  code & 255,
  code >> 8,
  ifTrue,
  ifFalse,
  ...new Uint8Array(Uint32Array.of(value).buffer),
]
const LOAD_NUMBER = step(0x20, 0, 0, 0)
const filter = Uint8Array.from([
  ...LOAD_NUMBER,
  ...calls.flatMap((call, index) => step(0x15, calls.length - index, 0, call)),
  ...step(0x06, 0, 0, ALLOWED),
  ...step(0x06, 0, 0, REFUSED),
])
const STEP_BYTES = 8
const program = new BigUint64Array([BigInt(filter.byteLength / STEP_BYTES), BigInt(ptr(filter))])

const { symbols } = dlopen('libc.so.6', {
  prctl: { args: [FFIType.i32, FFIType.u64, FFIType.u64, FFIType.u64, FFIType.u64], returns: FFIType.i32 },
  execv: { args: [FFIType.ptr, FFIType.ptr], returns: FFIType.i32 },
})
if (symbols.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) !== 0) throw new Error('prctl refuses')
if (symbols.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ptr(program), 0, 0) !== 0)
  throw new Error('no filter can be set')
const words = process.argv.slice(2).map((word) => Buffer.from(`${word}\0`))
const list = new BigUint64Array([...words.map((word) => BigInt(ptr(word))), 0n])
symbols.execv(ptr(words[0]!), ptr(list))
throw new Error(`${process.argv[2]} cannot be run`)
