/** What the commands of an agent share: its file, and what opens the file. The agent itself is loaded on use. */
import { resolve } from 'node:path'
import type { AgentContents } from '../../agent-client/agent-contents.ts'
import type { Agent } from '../../agent-client/agent.ts'
import { OperatorError } from '../../base/operator-error.ts'
import type { Seal, SealedFile } from '../../base/sealed-file.ts'
import type { Invocation, Terminal } from '../command.ts'
import {
  passphraseOf,
  passphraseVariable,
  sealedFileCommand,
  sealedFilePath,
  workFactorOf,
  type SealedFileKind,
} from '../sealed-file-command.ts'

const VARIABLES = 'HOLDFAST_AGENT'
const PASSPHRASE = passphraseVariable({ variables: VARIABLES })

const credentialFile: SealedFileKind = {
  fileName: 'agent.age',
  variables: VARIABLES,
  options: {
    file: { value: 'FILE', doc: "Path of the agent's file. Default: holdfast/agent.age in your data folder." },
    'key-file': { value: 'FILE', doc: 'Path of the key that decrypts it. Default: FILE.key.' },
  },
  howItOpens: `The credential is one encrypted file. The key that decrypts it is in a second file, created with the first and readable
only by you. If ${PASSPHRASE} is set at that time, the file is encrypted with that passphrase instead,
and there is no key file.`,
}

export const agentCommand = sealedFileCommand(credentialFile)

export const agentPath = (invocation: Invocation): Promise<string> => sealedFilePath(credentialFile, invocation)

/** Returns the agent that the options name; null if there is none. */
export async function findAgent(invocation: Invocation): Promise<Agent | null> {
  const path = await agentPath(invocation)
  const { SealedFile, needsPassphrase } = await import('../../base/sealed-file.ts')
  if (!SealedFile.exists(path)) return null
  const seal = needsPassphrase(path)
    ? await passphraseSeal(invocation.terminal, { isNew: false })
    : { key: await readKey(invocation, path) }
  const file = await agentFile(path, seal)
  return agentOf(invocation.terminal, file, await file.read())
}

/** Returns the agent that the options name. Throws OperatorError if there is none. */
export async function openAgent(invocation: Invocation): Promise<Agent> {
  const agent = await findAgent(invocation)
  if (agent === null)
    throw new OperatorError(
      `there is no agent at ${await agentPath(invocation)}: run "holdfast agent register" to create one`,
    )
  return agent
}

/** Returns an agent that has not registered yet. Its file is written after registration; a key file is written now. */
export async function makeAgent(invocation: Invocation, contents: AgentContents): Promise<Agent> {
  const path = await agentPath(invocation)
  const { terminal } = invocation
  const seal =
    terminal.env[PASSPHRASE] === undefined
      ? { key: await readOrMakeKey(invocation, path) }
      : await passphraseSeal(terminal, { isNew: true })
  return agentOf(terminal, await agentFile(path, seal), contents)
}

async function agentFile(path: string, seal: Seal): Promise<SealedFile<AgentContents>> {
  const [{ SealedFile }, { AGENT_FORMAT }] = await Promise.all([
    import('../../base/sealed-file.ts'),
    import('../../agent-client/agent-contents.ts'),
  ])
  return new SealedFile<AgentContents>(path, { name: 'agent', format: AGENT_FORMAT }, seal)
}

async function agentOf(terminal: Terminal, file: SealedFile<AgentContents>, contents: AgentContents): Promise<Agent> {
  const { Agent } = await import('../../agent-client/agent.ts')
  return new Agent(file, contents, terminal)
}

async function passphraseSeal(terminal: Terminal, how: { isNew: boolean }): Promise<Seal> {
  const { requireLength } = await import('../../base/sealed-file.ts')
  const passphrase = await passphraseOf(credentialFile, terminal, how)
  if (how.isNew) requireLength(passphrase)
  return { passphrase, workFactor: await workFactorOf(credentialFile, terminal) }
}

const keyPath = ({ options }: Invocation, path: string): string => {
  const given = options['key-file']
  return given === undefined ? `${path}.key` : resolve(given)
}

async function readKey(invocation: Invocation, path: string): Promise<string> {
  const from = keyPath(invocation, path)
  const key = await keyAt(from)
  if (key === null) throw new OperatorError(`there is no key at ${from}, so ${path} cannot be decrypted`)
  return key
}

/** An assistant may start several programs at once: all use the key of the first one that makes one. */
async function readOrMakeKey(invocation: Invocation, path: string): Promise<string> {
  const [{ newSealKey }, { writePrivately }] = await Promise.all([
    import('../../base/sealed-file.ts'),
    import('../../base/private-file.ts'),
  ])
  const at = keyPath(invocation, path)
  const known = await keyAt(at)
  if (known !== null) return known
  const key = await newSealKey()
  try {
    writePrivately(at, `${key}\n`, { replace: false })
    return key
  } catch (error) {
    const made = await keyAt(at)
    if (made === null) throw error
    return made
  }
}

/** Null if there is no file. Throws OperatorError if it holds no key, or if others may read it. */
async function keyAt(path: string): Promise<string | null> {
  const [{ requireSealKey }, { readPrivately }] = await Promise.all([
    import('../../base/sealed-file.ts'),
    import('../../base/private-file.ts'),
  ])
  const key = readPrivately(path)?.trim() ?? null
  if (key !== null) await requireSealKey(key, path)
  return key
}
