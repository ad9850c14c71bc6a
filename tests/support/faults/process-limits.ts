/** Limits of a running process, which make it meet a full disk, or a table of open files without room. */
type Resource = 'fsize' | 'nofile'

/** Change the soft limit of a process. Files that are larger, and descriptors that are higher, stay. */
function limit(pid: number, resource: Resource, to: number | string): void {
  const { exitCode, stderr } = Bun.spawnSync(['prlimit', `--pid=${pid}`, `--${resource}=${to}:`])
  if (exitCode !== 0) throw new Error(`prlimit: ${stderr.toString()}`)
}

/** From now on no file of the process may grow beyond `bytes`. */
export const limitFiles = (pid: number, bytes: number) => limit(pid, 'fsize', bytes)
export const liftFileLimit = (pid: number) => limit(pid, 'fsize', 'unlimited')

/** Standard input, output and error. */
const STANDARD_DESCRIPTORS = 3

/** From now on the process can open nothing more, until the returned function is called. */
export function exhaustDescriptors(pid: number): () => void {
  const { stdout } = Bun.spawnSync(['prlimit', `--pid=${pid}`, '--nofile', '--output=SOFT', '--noheadings'])
  limit(pid, 'nofile', STANDARD_DESCRIPTORS)
  return () => limit(pid, 'nofile', stdout.toString().trim())
}
