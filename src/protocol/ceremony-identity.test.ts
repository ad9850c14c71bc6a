import { describe, expect, test } from 'bun:test'
import genesisVectors from '../../tests/vectors/plc-genesis-v1.json'
import webVectors from '../../tests/vectors/contract/did-web-ceremony-v1.json' with { type: 'json' }
import { Random } from '../../tests/support/random.ts'
import { checkCeremonyDocument, checkCeremonyGenesis, type CeremonyTerms } from './ceremony-identity.ts'
import type { Handle } from './identifiers.ts'
import { genesisOperation, operationCid, signOperation, type Operation } from './plc.ts'
import { formatDidKey, signingKey, type SigningKey } from './keys.ts'

const termsOf = ({
  pendingHandle,
  issuedRepoKey,
  publicUrl,
}: typeof genesisVectors | typeof webVectors): CeremonyTerms => ({
  handle: pendingHandle as Handle,
  signingKey: issuedRepoKey,
  publicUrl,
})

describe('a genesis operation that a wallet has signed', () => {
  const terms = termsOf(genesisVectors)
  const { request, expect: expected } = genesisVectors
  const keys = { deviceKey: request.rotationKeyPublic, recoveryKey: request.recoveryKey }

  test('makes the identity and the document of the vector', () => {
    const outcome = checkCeremonyGenesis(request.signedCreationOp, keys, terms)
    if (!outcome.ok) throw new Error(outcome.fault)
    expect(outcome.identity).toMatchObject({ did: expected.did })
    expect<unknown>(outcome.identity.document).toEqual(expected.didDocument)
    expect(operationCid(outcome.identity.genesis).toString()).toBe(expected.cid)
  })

  for (const { name, why, rotationKeyPublic, signedCreationOp } of genesisVectors.reject)
    test(`is refused: ${name} (${why})`, () => {
      expect(checkCeremonyGenesis(signedCreationOp, { ...keys, deviceKey: rotationKeyPublic }, terms).ok).toBe(false)
    })

  test('is refused with any character changed, added or missing', () => {
    const random = new Random(81)
    const letters = 'aA0Z9{}[]",:.-_/=# \\u'
    const whole = JSON.stringify({ operation: request.signedCreationOp, ...keys })
    let accepted = 0
    for (let i = 0; i < 10_000; i++) {
      const at = random.below(whole.length)
      const kept = whole.slice(0, at)
      const change = random.of(['replaced', 'added', 'missing'])
      const text =
        kept +
        (change === 'missing' ? '' : letters[random.below(letters.length)]) +
        whole.slice(change === 'added' ? at : at + 1)
      let value: { operation?: unknown; deviceKey?: unknown; recoveryKey?: unknown }
      try {
        value = JSON.parse(text)
      } catch {
        continue
      }
      if (
        typeof value.deviceKey !== 'string' ||
        typeof value.recoveryKey !== 'string' ||
        Bun.deepEquals(value, JSON.parse(whole))
      )
        continue
      if (
        checkCeremonyGenesis(value.operation, { deviceKey: value.deviceKey, recoveryKey: value.recoveryKey }, terms).ok
      )
        accepted++
    }
    expect(accepted).toBe(0)
  })

  const made = (count: number): SigningKey[] =>
    Array.from({ length: count }, (_, i) => signingKey('p256', new Uint8Array(32).fill(i + 1)))
  const named = (key: SigningKey) => formatDidKey(key.publicKey)
  const signed = (rotationKeys: string[], changes: Partial<Operation> = {}) => {
    const operation = genesisOperation({
      signingKey: terms.signingKey,
      handle: terms.handle,
      rotationKeys,
      pdsEndpoint: terms.publicUrl,
    })
    return signOperation({ ...operation, ...changes }, made(1)[0]!)
  }
  const check = (operation: unknown, recoveryKey: string) =>
    checkCeremonyGenesis(operation, { deviceKey: named(made(1)[0]!), recoveryKey }, terms)

  test('may have up to five rotation keys, all of them different, as the directory has it', () => {
    const names = made(6).map(named)
    expect(check(signed(names.slice(0, 5)), names[4]!).ok).toBe(true)
    expect(check(signed(names), names[1]!).ok).toBe(false)
    expect(check(signed([names[0]!, names[1]!, names[1]!]), names[1]!).ok).toBe(false)
    expect(
      check(signed([names[0]!, names[1]!, 'did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK']), names[1]!).ok,
    ).toBe(false)
  })

  test('keeps further names, services and methods, and they are in its document', () => {
    const names = made(2).map(named)
    const plain = signed(names)
    const outcome = check(
      signed(names, {
        alsoKnownAs: [...plain.alsoKnownAs, 'https://alice.example'],
        services: { ...plain.services, a_labeler: { type: 'AtprotoLabeler', endpoint: 'https://labels.example' } },
        verificationMethods: { ...plain.verificationMethods, a_label: names[1]! },
      }),
      names[1]!,
    )
    if (!outcome.ok) throw new Error(outcome.fault)
    const { did, document } = outcome.identity
    expect(document.alsoKnownAs).toEqual([`at://${terms.handle}`, 'https://alice.example'])
    expect(document.service?.map(({ id }) => id)).toEqual(['#atproto_pds', '#a_labeler'])
    expect(document.verificationMethod?.map(({ id }) => id)).toEqual([`${did}#atproto`, `${did}#a_label`])
  })

  test('is refused if it is nothing of the kind', () => {
    for (const operation of [null, 1, 'x', [], {}, { type: 'plc_tombstone', prev: 'x', sig: 'x' }])
      expect(check(operation, named(made(1)[0]!)).ok).toBe(false)
  })
})

describe('a did:web document that a wallet has published', () => {
  const terms = termsOf(webVectors)
  const { didWebDocument, rotationKeyPublic } = webVectors.request

  test('makes the identity of the vector', () => {
    expect(checkCeremonyDocument(didWebDocument, rotationKeyPublic, terms)).toMatchObject({
      ok: true,
      identity: { did: webVectors.did },
    })
  })

  for (const { name, didWebDocument } of webVectors.reject)
    test(`is refused: ${name}`, () => {
      expect(checkCeremonyDocument(didWebDocument, rotationKeyPublic, terms).ok).toBe(false)
    })

  test('is refused with two keys of one name, because nobody could prove to be its owner', () => {
    expect(
      checkCeremonyDocument(JSON.stringify(webVectors.duplicateDevice.document), rotationKeyPublic, terms).ok,
    ).toBe(false)
  })

  test('is refused with two services of the name of this one', () => {
    const document = JSON.parse(didWebDocument)
    document.service.unshift({ ...document.service[0], serviceEndpoint: 'https://elsewhere.example' })
    expect(checkCeremonyDocument(JSON.stringify(document), rotationKeyPublic, terms).ok).toBe(false)
  })

  test('is refused if it is no document, however long its endpoint is', () => {
    const endless = didWebDocument.replace(
      'https://pds.holdfast.test/',
      `https://pds.holdfast.test${'/'.repeat(60_000)}x`,
    )
    for (const text of ['', '{', 'null', '[]', '"did:web:a.example"', '{"id":"did:web:"}', '{"id":1}', endless])
      expect(checkCeremonyDocument(text, rotationKeyPublic, terms).ok).toBe(false)
  })
})
