/** Commands that run out of disk say which disk. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomBytes, Uploader } from '../../support/clients/uploader.ts'
import { withSmallDisk } from '../../support/faults/small-disk.ts'
import { useWorldOnFile } from '../../support/file-world.ts'
import { PROGRAM, runProgram } from '../../support/servers/program.ts'
import { setUp } from '../../support/set-up.ts'

setDefaultTimeout(60_000)
const MIB = 1024 ** 2

const { pds } = useWorldOnFile()
const alice = setUp(() => Uploader.join(pds, 'alice'))
const home = mkdtempSync(join(tmpdir(), 'holdfast-room-'))
const archive = join(home, 'archive')
const env = { SERVICE_PUBLIC_URL: 'http://localhost:1', SERVICE_PORT: '1', SERVICE_LOG_LEVEL: 'error' }

beforeAll(async () => {
  await alice.refer('com.example.note/1', await alice.upload(randomBytes(3 * MIB)))
  const made = await runProgram(['backup', archive, '--dev'], { ...env, SERVICE_DATA_DIR: pds.dataDir })
  expect(made).toMatchObject({ code: 0 })
})
afterAll(() => rmSync(home, { recursive: true }))

let disks = 0

/** Run a script of the shell, for which "$@" is the program, with its data directory on a disk of this size. */
async function onDisk(bytes: number, script: string) {
  const disk = join(home, `disk-${++disks}`)
  const given = {
    ...env,
    ARCHIVE: archive,
    DID: alice.did,
    SERVICE_DATA_DIR: disk,
    SERVICE_BACKUP_DESTINATION: archive,
    SERVICE_REWRAP_NEW_MASTER_KEY: 'cd'.repeat(32),
  }
  const program = [...withSmallDisk(disk, bytes), 'sh', '-c', script, 'sh', ...PROGRAM]
  return { disk, ...(await runProgram([], given, program)) }
}

const RESTORE = '"$@" restore "$ARCHIVE" --dev'

test.each([
  ['the database', 1, ''],
  ['a blob', 3, '/blobs'],
])('a restore whose disk has no room for %s', async (_, mib, folder) => {
  const { disk, code, err } = await onDisk(mib * MIB, RESTORE)
  expect({ code, err }).toEqual({
    code: 1,
    err: `holdfast restore: the disk of ${disk}${folder} is full: free some space\n`,
  })
})

/** Fill the disk until this many KiB are left, and run the command. */
const whenFull = (command: string, leftKib: number) =>
  `${RESTORE} >/dev/null && cat /dev/zero >"$SERVICE_DATA_DIR/ballast" 2>/dev/null
truncate -s -${leftKib}K "$SERVICE_DATA_DIR/ballast"; exec "$@" ${command} --dev`

test.each([
  ['rewrap', 0],
  ['rewrap', 40],
  ['repair "$DID" --backup newest', 0],
  ['repair "$DID" --backup newest', 800],
])('%s with %d KiB left', async (command, leftKib) => {
  const { disk, code, err } = await onDisk(12 * MIB, whenFull(command, leftKib))
  const [name] = command.split(' ')
  expect({ code, err }).toEqual({
    code: 1,
    err: expect.stringMatching(new RegExp(`^holdfast ${name}: the disk of ${disk}/[^ ]+ is full: free some space\n$`)),
  })
})
