import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { parse } from 'smol-toml'
import { fileKeysText, settingsText } from './settings-file.ts'

const values = {
  SERVICE_PUBLIC_URL: 'https://pds.example.com',
  SERVICE_CRAWLERS: '',
  SERVICE_SERVICE_NAME: 'A name # with spaces',
  SERVICE_EMAIL_SMTP_PASSWORD: 'a $HOME `id` "b" \\ c!',
  SERVICE_EMAIL_FROM_NAME: "Alice's server",
}

test('a shell and the server read what was written', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-settings-'))
  const path = join(folder, 'holdfast.env')
  try {
    const text = settingsText(values)
    writeFileSync(path, text)
    expect(parseEnv(text)).toEqual(values)
    const { stdout } = Bun.spawnSync(['sh', '-c', 'set -a; . "$1"; env -0', 'sh', path], { env: {} })
    const read = stdout
      .toString()
      .split('\0')
      .map((line) => line.split(/=(.*)/s).slice(0, 2))
    expect(Object.fromEntries(read)).toMatchObject(values)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('each key is under the comment that explains it, and others at the end', () => {
  expect(settingsText(values)).toMatch(
    /^# The server's address[^\n]*\nSERVICE_PUBLIC_URL=[^]*^# Mail[^\n]*\nSERVICE_EMAIL_FROM_NAME=[^]*^# Further keys.\nSERVICE_CRAWLERS=$/m,
  )
})

test('a value that readers would take differently is refused, without being repeated', () => {
  for (const value of [`both ' and "`, "'$HOME", 'two\nlines'])
    expect(() => settingsText({ SERVICE_ADMIN_TOKEN: value })).toThrow(
      /^SERVICE_ADMIN_TOKEN has characters that systemd and shells read differently/,
    )
})

test('keys without a variable become TOML', () => {
  const keys = {
    'contact.email': 'ops@example.com',
    'blobs.max_blob_size': 1000,
    'links.privacy_policy': 'https://a.example/"',
  }
  expect(parse(fileKeysText(keys))).toEqual({
    contact: { email: 'ops@example.com' },
    blobs: { max_blob_size: 1000 },
    links: { privacy_policy: 'https://a.example/"' },
  })
})
