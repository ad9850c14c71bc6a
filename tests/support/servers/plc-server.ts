/** The real PLC directory server, in this process and in memory. */
import type { AddressInfo } from 'node:net'
import { Database, PlcServer } from '@did-plc/server'

export interface PlcHost extends AsyncDisposable {
  readonly url: string
}

export async function startPlcServer(): Promise<PlcHost> {
  const plc = PlcServer.create({ db: Database.mock(), port: 0 })
  const server = await plc.start()
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      await plc.destroy()
    },
  }
}
