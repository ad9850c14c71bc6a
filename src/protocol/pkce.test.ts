import { expect, test } from 'bun:test'
import { codeChallengeOf, isCodeChallenge, isCodeVerifier } from './pkce.ts'

test('the example of RFC 7636, appendix B', () => {
  expect(codeChallengeOf('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk')).toBe(
    'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  )
})

test('verifiers have 43 to 128 unreserved characters, challenges 43', () => {
  expect([42, 43, 128, 129].map((length) => isCodeVerifier('~'.repeat(length)))).toEqual([false, true, true, false])
  expect(isCodeVerifier(`${'a'.repeat(43)}+`)).toBe(false)
  expect([42, 43, 44].map((length) => isCodeChallenge('_'.repeat(length)))).toEqual([false, true, false])
})
