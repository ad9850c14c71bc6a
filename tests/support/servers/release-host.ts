/** A place on the web where releases are, signed with a key of the test, and what may go wrong with one. */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Built, packRelease } from '../../../release/package-folder.ts'
import { newReleaseKey, parseReleaseKey, type ReleaseKey } from '../../../release/release-key.ts'
import { ownPlatform } from '../../../src/base/release-origin.ts'
import { signMinisign } from '../../../src/protocol/minisign.ts'
import { SOURCE } from './program.ts'

export interface ReleaseHost extends AsyncDisposable {
  readonly url: string
  readonly folder: string
  readonly key: ReleaseKey
  /** Names of the files that were asked for, in order. */
  readonly requests: string[]
  /** What is sent instead of a file, by its name. */
  answers: Record<string, () => Response | Promise<Response>>
  /** Make a release of one executable for this machine, which takes the place of the last one. */
  publish(version: string, executable: string, changes?: object): Promise<void>
  /** Sign a file again, after a change. */
  sign(name: string, key?: ReleaseKey, comment?: string): void
}

/** Name of the executable for this machine. */
export const EXECUTABLE = `holdfast-${ownPlatform()}`

/** A program that says it is this version, does what `instead` says for a word, and is otherwise `program`. */
export const programOf = (version: string, instead: Record<string, string> = {}, program: string[] = SOURCE): string =>
  [
    '#!/bin/sh',
    'case $1 in',
    `  version) echo 'holdfast v${version}' ;;`,
    ...Object.entries(instead).map(([word, script]) => `  ${word}) ${script} ;;`),
    `  *) exec ${program.map((word) => `'${word}'`).join(' ')} "$@" ;;`,
    'esac',
    '',
  ].join('\n')

export const freshKey = (): ReleaseKey => parseReleaseKey(newReleaseKey().secretFile, null)

export function startReleaseHost(): ReleaseHost {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-releases-'))
  const requests: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const name = new URL(request.url).pathname.slice(1)
      requests.push(name)
      const answer = host.answers[name]
      if (answer !== undefined) return answer()
      const path = join(folder, name)
      return existsSync(path) ? new Response(Bun.file(path)) : new Response('not here', { status: 404 })
    },
  })
  const key = freshKey()
  const url = `http://127.0.0.1:${server.port}`
  const commentOf = (name: string): string => {
    const { version } = JSON.parse(readFileSync(join(folder, 'latest.json'), 'utf8')) as { version: string }
    return `file:${name}\tversion:${version}`
  }
  const host: ReleaseHost = {
    url,
    folder,
    key,
    requests,
    answers: {},
    async publish(version, executable, changes) {
      writeFileSync(join(folder, EXECUTABLE), executable)
      chmodSync(join(folder, EXECUTABLE), 0o755)
      const built: Built[] = [{ platform: ownPlatform(), file: EXECUTABLE }]
      await packRelease({ folder, version, url, key, built, notes: '', bill: {}, at: new Date() })
      if (changes === undefined) return
      const path = join(folder, 'latest.json')
      writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), ...changes }))
      host.sign('latest.json')
    },
    sign(name, signer = key, comment = commentOf(name)) {
      const digest = new Bun.CryptoHasher('blake2b512').update(readFileSync(join(folder, name))).digest()
      writeFileSync(join(folder, `${name}.minisig`), signMinisign(digest, signer.id, signer.key, comment))
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true)
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return host
}
