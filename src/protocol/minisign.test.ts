import { expect, test } from 'bun:test'
import { parseMinisignKey, verifyMinisign } from './minisign.ts'

/** Made by minisign 0.11: `minisign -G -W` and `minisign -S -m vector.txt -t file:vector.txt`. */
const publicKey = 'RWQumOk6pAZ1lUaZMjOLawyAtLgTyLLivRhWX0DbU+EGrf71uF7jveER'
const key = parseMinisignKey(publicKey)!
const digest = new Bun.CryptoHasher('blake2b512').update('holdfast\n').digest()
const signature = `untrusted comment: signature from minisign secret key
RUQumOk6pAZ1lcD3fR3jLzflQav994mB3rXRMQoU0xCbieq7A6oz6Ea1jSDOkHgKNobNuwgSH+JN9bwab4WqhgiRpQi0yWqyoAs=
trusted comment: file:vector.txt
oplHC2gm+o3OmZKWjEjOTBYZIomsEFXDygAKG98DDnNvmeFOIOPCxEl92VkAvKrtrWYtWcvvQK1jQNQy7NNzDg==
`
/** Of the same file, by `minisign -S -l`: of the file itself instead of its digest. */
const ofTheFile = `untrusted comment: signature from minisign secret key
RWQumOk6pAZ1lSso3ipv6uTXy+2kYjycAG/TimvkWqass5y/7pe64Q+zXt/AWtDbMCD3IYEZyppf/0cQnpaT+ywaJab3q501HA8=
trusted comment: file:vector.txt
AHDhPrLaTXwf6oI96YQpdCCeQ1bx+ajCnPTApG/nwn4pUdtD87HwtmKInAEqBovFmzOhquUMWe03xT+2XsQ9Aw==
`

test('a signature of minisign verifies, and its comment is read', () => {
  expect(verifyMinisign(signature, key, digest)).toEqual({ ok: true, comment: 'file:vector.txt' })
  expect(verifyMinisign(signature.replaceAll('\n', '\r\n').trim(), key, digest)).toMatchObject({ ok: true })
})

test('a public key is its line, or the file that minisign writes', () => {
  expect(parseMinisignKey(`untrusted comment: minisign public key 957506A43AE9982E\n${publicKey}\n`)!.id).toEqual(
    key.id,
  )
  for (const text of [
    '',
    'RWQ',
    publicKey.slice(0, -4),
    `${publicKey}A`,
    publicKey.replace('RW', 'RU'),
    'x'.repeat(56),
  ])
    expect(parseMinisignKey(text)).toBeNull()
})

test.each([
  ['of another file', signature, 'other\n', 'does not match the file'],
  ['with a changed comment', signature.replace('vector.txt', 'other.txt'), 'holdfast\n', 'does not match the file'],
  ['with a changed byte', signature.replace('lcD3', 'lcD4'), 'holdfast\n', 'does not match the file'],
  ['by another key', signature.replace('RUQumO', 'RUQumP'), 'holdfast\n', 'was made with another key'],
  ['of the file instead of its digest', ofTheFile, 'holdfast\n', 'is not a minisign signature'],
  ['that is cut off', signature.slice(0, 200), 'holdfast\n', 'is not a minisign signature'],
  ['that is too long', `${signature}more\n`, 'holdfast\n', 'is not a minisign signature'],
  ['that is empty', '', 'holdfast\n', 'is not a minisign signature'],
])('a signature %s is refused', (_, text, file, fault) => {
  const of = new Bun.CryptoHasher('blake2b512').update(file).digest()
  expect(verifyMinisign(text, key, of)).toEqual({ ok: false, fault })
})
