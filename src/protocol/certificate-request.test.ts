import { describe, expect, test } from 'bun:test'
import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import 'reflect-metadata'
import * as x509 from '@peculiar/x509'
import { certificateRequest, renewalName } from './certificate-request.ts'

const SUBJECT_ALT_NAME = '2.5.29.17'
const names = ['example.com', '*.example.com', `${'long-label.'.repeat(20)}example.com`]

describe('a request for a certificate', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const request = new x509.Pkcs10CertificateRequest(new Uint8Array(certificateRequest(names, privateKey)))

  test('is signed by its key, in the eyes of another implementation', async () => {
    expect(await request.verify()).toBe(true)
  })

  test('has the names as its alternative names, and no subject', () => {
    const { names: asked } = request.getExtension(SUBJECT_ALT_NAME) as x509.SubjectAlternativeNameExtension
    expect(asked.toJSON()).toEqual(names.map((value) => ({ type: 'dns', value })))
    expect(request.subject).toBe('')
  })
})

/** The certificate of RFC 9773, appendix A. */
const published = `-----BEGIN CERTIFICATE-----
MIIBQzCB66ADAgECAgUAh2VDITAKBggqhkjOPQQDAjAVMRMwEQYDVQQDEwpFeGFt
cGxlIENBMCIYDzAwMDEwMTAxMDAwMDAwWhgPMDAwMTAxMDEwMDAwMDBaMBYxFDAS
BgNVBAMTC2V4YW1wbGUuY29tMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEeBZu
7cbpAYNXZLbbh8rNIzuOoqOOtmxA1v7cRm//AwyMwWxyHz4zfwmBhcSrf47NUAFf
qzLQ2PPQxdTXREYEnKMjMCEwHwYDVR0jBBgwFoAUaYhba4dGQEHhs3uEe6CuLN4B
yNQwCgYIKoZIzj0EAwIDRwAwRAIge09+S5TZAlw5tgtiVvuERV6cT4mfutXIlwTb
+FYN/8oCIClDsqBklhB9KAelFiYt9+6FDj3z4KGVelYM5MdsO3pK
-----END CERTIFICATE-----
`

test('a certificate is renewed by the name that the standard gives for it', () => {
  const { raw, serialNumber } = new X509Certificate(published)
  expect(renewalName(raw, serialNumber)).toBe('aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE')
})

test('what is cut off or no certificate has no such name', () => {
  const { raw, serialNumber } = new X509Certificate(published)
  for (let length = 0; length < 200; length++) expect(renewalName(raw.subarray(0, length), serialNumber)).toBeNull()
  expect(renewalName(new Uint8Array(1000).fill(0xff), serialNumber)).toBeNull()
})
