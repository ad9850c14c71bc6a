/** Has the kernel refuse system calls of this process, for good. Linux on x64 and arm64. */
import { dlopen, FFIType, ptr } from 'bun:ffi'

const PR_SET_NO_NEW_PRIVS = 38
const SECCOMP_SET_MODE_FILTER = 1
const OF_ALL_THREADS = 1 // SECCOMP_FILTER_FLAG_TSYNC
const REFUSED = 0x00050000 // SECCOMP_RET_ERRNO
const ALLOWED = 0x7fff0000
const arch = process.arch as 'x64' | 'arm64'

/** Numbers of system calls. */
export const systemCalls = {
  link: { x64: [86, 265], arm64: [37] }[arch],
  fdatasync: { x64: [75], arm64: [83] }[arch],
}
const SECCOMP = { x64: 317, arm64: 277 }[arch]

export const EPERM = 1
export const EIO = 5

/** An instruction of a filter (`struct sock_filter`). */
const step = (code: number, ifTrue: number, ifFalse: number, value: number): number[] => [
  code & 255,
  code >> 8,
  ifTrue,
  ifFalse,
  ...new Uint8Array(Uint32Array.of(value).buffer),
]
const LOAD_NUMBER = step(0x20, 0, 0, 0)
const STEP_BYTES = 8

/** From now on, these calls fail with this error: of all threads, and of the programs that they start. */
export function refuseCalls(calls: readonly number[], errno: number): void {
  const { symbols } = dlopen('libc.so.6', {
    prctl: { args: [FFIType.i32, FFIType.u64, FFIType.u64, FFIType.u64, FFIType.u64], returns: FFIType.i32 },
    syscall: { args: [FFIType.u64, FFIType.u64, FFIType.u64, FFIType.ptr], returns: FFIType.i64 },
  })
  const filter = Uint8Array.from([
    ...LOAD_NUMBER,
    ...calls.flatMap((call, index) => step(0x15, calls.length - index, 0, call)),
    ...step(0x06, 0, 0, ALLOWED),
    ...step(0x06, 0, 0, REFUSED + errno),
  ])
  const program = new BigUint64Array([BigInt(filter.byteLength / STEP_BYTES), BigInt(ptr(filter))])
  if (symbols.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) !== 0) throw new Error('prctl refuses')
  if (Number(symbols.syscall(SECCOMP, SECCOMP_SET_MODE_FILTER, OF_ALL_THREADS, ptr(program))) !== 0)
    throw new Error('no filter can be set')
}
