import { existsSync, rmSync } from 'node:fs'
import { rewrapVariables } from '../../platform/configuration/config-loading.ts'
import { openData } from '../../platform/files/data-directory.ts'
import { processLog } from '../../platform/running/log.ts'
import { OperatorError } from '../../base/operator-error.ts'
import { AlreadyRewrapped, opensAll, rewrap } from '../../platform/secrets/rewrap.ts'
import { inDatabaseWords } from '../../platform/database/database-words.ts'
import { requireDatabase } from '../../platform/database/open-database.ts'
import { keyFileBeside, masterKeyFile, Vault } from '../../platform/secrets/vault.ts'
import { exitCodes } from '../command.ts'
import { configured } from '../configuration.ts'

const { old: OLD, new: NEW } = rewrapVariables

export const rewrapCommand = configured({
  summary: 'Change the master key that wraps all stored secrets.',
  details: `Takes the keys from ${OLD} and ${NEW}, 64 hexadecimal characters each.
Without an old key, uses the one in master.key, and removes that file afterwards. Signing keys and sessions stay as they
are. Stop the server first, then start it with the new key as SERVICE_SIGNING_KEY_MASTER_KEY.`,
  async run({ terminal, config }) {
    const keyFile = masterKeyFile(config.dataDir)
    const given = keyOf(OLD, terminal.env[OLD])
    if (given === null && !existsSync(keyFile))
      throw new OperatorError(
        `${OLD} is required: there is no ${keyFile}. If an earlier run removed that file, it completed the change`,
      )
    const to = keyOf(NEW, terminal.env[NEW])
    if (to === null) throw new OperatorError(`${NEW} is required`)
    const from = given ?? keyFileBeside(config.dataDir)
    if (Buffer.from(from).equals(to)) throw new OperatorError('the two keys are the same')

    requireDatabase(config.databaseUrl)
    const { db, close } = await openData(config, { log: processLog(config), now: Date.now() })
    try {
      const vault = new Vault(to)
      const counts = await rewrap(db, new Vault(from), vault).catch(async (error: unknown) => {
        // An earlier run that used the file may have been killed before it removed the file. Unless the new key opens
        // everything, the file may have the only key to the rest.
        if (given === null && error instanceof AlreadyRewrapped && (await opensAll(db, vault))) rmSync(keyFile)
        throw inDatabaseWords(error, config.databaseUrl)
      })
      if (given === null) rmSync(keyFile)
      for (const [column, count] of Object.entries(counts)) terminal.out(`${column}: ${count}`)
      return exitCodes.ok
    } finally {
      await close()
    }
  },
})

function keyOf(name: string, text: string | undefined): Uint8Array | null {
  if (text === undefined || text.trim() === '') return null
  if (!/^[0-9a-f]{64}$/i.test(text.trim())) throw new OperatorError(`${name}: expected 64 hexadecimal characters`)
  return Buffer.from(text.trim(), 'hex')
}
