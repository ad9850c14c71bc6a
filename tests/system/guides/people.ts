/** What the people on a machine do while its operator follows a guide. */
import { request } from '../../support/clients/http.ts'
import type { Machine } from './machine.ts'

/** The password of an account that an operator sets, signed in with. */
export async function signIn(machine: Machine, name: string) {
  const { password } = JSON.parse(await machine.run(`pds account reset-password ${name} --generate --json`)) as {
    password: string
  }
  const { body } = await request(`${machine.url}/xrpc/com.atproto.server.createSession`, {
    json: { identifier: `${name}.pds.example.com`, password },
  })
  return body as { did: string; accessJwt: string }
}

export const post = async ({ url }: Machine, { did, accessJwt }: { did: string; accessJwt: string }) =>
  (
    await request(`${url}/xrpc/com.atproto.repo.createRecord`, {
      headers: { authorization: `Bearer ${accessJwt}` },
      json: { repo: did, collection: 'com.example.note', record: { text: 'hello' } },
    })
  ).body as { uri: string; cid: string }

export const remove = ({ url }: Machine, { did, accessJwt }: { did: string; accessJwt: string }, uri: string) =>
  request(`${url}/xrpc/com.atproto.repo.deleteRecord`, {
    headers: { authorization: `Bearer ${accessJwt}` },
    json: { repo: did, collection: 'com.example.note', rkey: uri.split('/').at(-1) },
  })

/** Whether anybody can read a record. */
export const readable = async ({ url }: Machine, uri: string) => {
  const [repo, collection, rkey] = uri.slice('at://'.length).split('/')
  return (await fetch(`${url}/xrpc/com.atproto.repo.getRecord?repo=${repo}&collection=${collection}&rkey=${rkey}`)).ok
}
