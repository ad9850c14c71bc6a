import { resolve } from 'node:path'
import { exitCodes, type Command } from '../command.ts'
import { jsonOption, tellResult } from '../report.ts'

export const migrateKeyCommand: Command = {
  summary: 'Create a recovery key of your own.',
  parameters: ['<file>'],
  details: `Writes a new secret key to the file, readable only by you, and prints its public key. Once your identity names it among
its rotation keys, you can move your account without the help of any server. Keep the file private,
and a copy on paper. Give the public key to "holdfast migrate in --recovery-key".`,
  options: jsonOption,
  async run(invocation) {
    const path = resolve(invocation.positionals[0]!)
    const [{ formatSecretMultikey }, { formatDidKey, signingKey }, { newSigningSecret }, { writePrivately }] =
      await Promise.all([
        import('../../protocol/secret-multikey.ts'),
        import('../../protocol/keys.ts'),
        import('../../platform/secrets/signing-keys.ts'),
        import('../../base/private-file.ts'),
      ])
    const secret = newSigningSecret('p256')
    writePrivately(path, `${formatSecretMultikey('p256', secret)}\n`, { replace: false })
    const publicKey = formatDidKey(signingKey('p256', secret).publicKey)
    tellResult(invocation, { publicKey, path }, publicKey)
    return exitCodes.ok
  },
}
