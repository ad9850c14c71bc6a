/** A companion app's device: pairs itself, and signs what it sends. */
import { randomBytes } from 'node:crypto'
import { registrationText, requestText } from '../../../src/protocol/admin-request.ts'
import { formatDidKey, signingKey, type SigningKey } from '../../../src/protocol/keys.ts'
import { bearer, request, type Answer } from './http.ts'
import { ADMIN_TOKEN } from '../servers/config.ts'
import type { TestPds } from '../servers/pds.ts'

export interface SignedInit {
  method?: string
  json?: unknown
  timestampSecs?: number
  nonce?: string
}

export class OperatorDevice {
  readonly key: SigningKey = signingKey('p256', randomBytes(32))
  id = ''

  constructor(readonly pds: TestPds) {}

  static async paired(pds: TestPds): Promise<OperatorDevice> {
    const device = new OperatorDevice(pds)
    const { body } = await request(`${pds.url}/v1/admin/pairing-codes`, {
      method: 'POST',
      headers: bearer(ADMIN_TOKEN),
    })
    const registered = await device.register(body.pairingCode)
    device.id = registered.body.deviceId
    return device
  }

  register(pairingCode: string, signedCode = pairingCode): Promise<Answer> {
    const publicKey = formatDidKey(this.key.publicKey)
    const timestamp = Math.floor(this.pds.clock.now() / 1000)
    const signature = this.#sign(registrationText(signedCode, publicKey, timestamp))
    return request(`${this.pds.url}/v1/admin/devices`, {
      json: { pairingCode, label: 'Phone', publicKey, platform: 'ios', timestamp, signature },
    })
  }

  headers(path: string, { method = 'GET', json, timestampSecs, nonce }: SignedInit = {}): Record<string, string> {
    const timestamp = String(timestampSecs ?? Math.floor(this.pds.clock.now() / 1000))
    const chosen = nonce ?? randomBytes(12).toString('base64url')
    const body = Buffer.from(json === undefined ? '' : JSON.stringify(json))
    const text = requestText({ method, path: path.split('?')[0]!, timestamp, nonce: chosen, body })
    return {
      'x-admin-device': this.id,
      'x-admin-timestamp': timestamp,
      'x-admin-nonce': chosen,
      'x-admin-signature': this.#sign(text),
    }
  }

  request(path: string, init: SignedInit = {}): Promise<Answer> {
    const method = init.method ?? (init.json === undefined ? 'GET' : 'POST')
    return request(this.pds.url + path, {
      method,
      headers: this.headers(path, { ...init, method }),
      ...(init.json === undefined ? {} : { json: init.json }),
    })
  }

  #sign(text: string): string {
    return Buffer.from(this.key.sign(Buffer.from(text))).toString('base64url')
  }
}
