/**
 * A peer that speaks QUIC in a process of its own, which can be killed without a farewell. It echoes what it is asked.
 */
import { startQuicPeer } from './quic-peer.ts'

export interface QuicProcess extends AsyncDisposable {
  readonly nodeId: string
  readonly addresses: readonly string[]
  /** As `kill -9` does. */
  kill(): Promise<void>
}

export async function startQuicProcess(alpn: string): Promise<QuicProcess> {
  const child = Bun.spawn([process.execPath, import.meta.path, alpn], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const reader = child.stdout.getReader()
  const { value } = await reader.read()
  const { nodeId, addresses } = JSON.parse(new TextDecoder().decode(value)) as Pick<QuicProcess, 'nodeId' | 'addresses'>
  const kill = async () => {
    child.kill('SIGKILL')
    await child.exited
  }
  return { nodeId, addresses, kill, [Symbol.asyncDispose]: kill }
}

if (import.meta.main) {
  const { nodeId, addresses } = await startQuicPeer({ alpn: process.argv[2]! })
  console.log(JSON.stringify({ nodeId, addresses }))
}
