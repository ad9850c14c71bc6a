/** Programs that see only their own processes, as in a container. */
import { readlinkSync } from 'node:fs'

/** Whether this process sees those of the whole machine. */
export const seesAllProcesses = readlinkSync('/proc/self/ns/pid') === 'pid:[4026531836]'

const namespaces = [
  ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--mount-proc'],
  ['unshare', '--pid', '--fork', '--mount-proc'],
]

/** Returns the words before those of a program that let it see its own processes only. */
export function inProcessNamespace(): string[] {
  const namespace = namespaces.find((each) => Bun.spawnSync([...each, 'true']).exitCode === 0)
  if (namespace === undefined) throw new Error('a namespace of processes needs unprivileged user namespaces, or root')
  return namespace
}
