/** What is left of an open port once it is closed. */
import { expect, test } from 'bun:test'
import { openHttpServer } from '../../../src/http/http-server.ts'
import { request } from '../../support/clients/http.ts'

test('the process keeps no server that was closed, of which each renewed certificate leaves one', async () => {
  const dispatch = () => Promise.resolve(new Response('here'))
  const before = process.listenerCount('beforeExit')
  for (let i = 0; i < 5; i++) {
    const server = openHttpServer({ dispatch, unsent: () => new Response() }, { hostname: '127.0.0.1', port: 0 })
    expect((await request(server.url)).body).toBe('here')
    await server.close()
  }
  expect(process.listenerCount('beforeExit')).toBe(before)
})
