/** Searches in loops, with what bounds them. Two lists that others made cost the product of their lengths. */
import { expect, test } from 'bun:test'
import { searchesOf } from './searches.ts'
import { sources } from './sources.ts'

/** Reading the whole tree takes a second of processor time, which a busy machine may not have for a while. */
const MAX_MILLIS = 60_000

/** What reads only texts of the operator or of the program itself. */
const readsOwnInput = (path: string) =>
  /^(?:agent-client|commands|wallet|features\/operations\/backup|platform\/(?:configuration|database|secrets))\//.test(
    path,
  ) || /^(?:cli|docs)\.ts$|\/generate\.ts$/.test(path)

/** The search, and why one of the two lengths is small. */
const searches: Readonly<Record<string, string>> = {
  'features/agents/agents/agent-admin-routes.ts: trustedIssuers.some(': 'the issuers of the configuration',
  'features/agents/agents/issuer-keys.ts: set.filter(':
    'once for the keys that are cached, and once for those fetched anew',
  'base/per-list.ts: one.every(': 'eight lists, once when a server starts',
  'features/data/blobs/reconcile.ts: a.every(': 'each record once',
  'features/data/blobs/blob-folder.ts: (await readdir(join(this.dir, shard.name))).filter(': 'each folder once',
  'features/data/blobs/scrubbing.ts: names.filter(': 'each page once',
  'features/identity/identity/identity-keys.ts: rotationKeys.includes(': 'two keys are looked for',
  'features/access/sessions/session-tokens.ts: token.lastIndexOf(': 'at most 17 keys, and a token of bounded length',
  'features/access/oauth/authorize-routes.ts: form.getAll(name).every(': 'seven names are looked for',
  'features/access/oauth/client-keys.ts: (keys as readonly Jwk[]).find(':
    'once for the keys that are cached, and once for those fetched anew',
  'features/access/scope-words/scope-phrases.ts: action.includes(': 'two verbs',
  'features/access/scope-words/collection-phrases.ts: actions.includes(': 'three verbs',
  'features/access/scope-words/scope-phrases.ts: collection.includes(': 'the text of its own scope, once',
  'features/access/scope-words/scope-phrases.ts: lxm.lastIndexOf(': 'its own name, once',
  'features/access/scope-words/scope-phrases.ts: lxm.includes(': 'the text of its own scope, once',
  'features/data/proxy/feed-munging.ts: munged.findIndex(': 'at most ten posts are inserted',
  'features/data/proxy/feed-munging.ts: munged.splice(': 'at most ten posts are inserted',
  'features/identity/repo-keys/key-rotation.ts: operation.rotationKeys.includes(': 'at most five rotation keys',
  'features/data/repo/tree-nodes.ts: stored.find(': 'not a list: a query',
  'features/data/sync/repo-export.ts: Buffer.concat(': 'each section once',
  'features/data/sync/repo-export.ts: cids.filter(': 'the CIDs of each page once',
  'features/operations/certificates/wanted-certificates.ts: groups.some(':
    'the domains of handles, for at most nine names',
  'features/operations/certificates/wanted-certificates.ts: names.includes(': 'the names of its own certificate, once',
  'platform/network/dns-responder.ts: Buffer.concat(': 'at most a chunk and the part of a query',
  'protocol/dns-answer.ts: name.indexOf(': 'from one label to the next',
  'protocol/dns-answer.ts: Buffer.concat(': 'each label once',
  'http/uploaded-form.ts: Buffer.concat(': 'four bytes',
  'http/path-table.ts: this.find(': 'two methods',
  'http/path-table.ts: pattern.every(': 'the segments of a route',
  'http/query.ts: text.includes(': 'its own parameter, once',
  'platform/network/outbound.ts: addresses.every(': '16 addresses, for each redirect that the caller permits',
  'platform/network/outbound.ts: address.includes(': 'one address, at most three times',
  'platform/running/limits.ts: large.some(': 'the limits of one request',
  'platform/running/steps.ts: found.some(': 'the kinds of steps',
  'platform/running/steps.ts: Array.from(this.#running.values()).filter(': 'the steps that run, for each kind',
  'protocol/cbor.ts: keys.every(': 'its own keys, once',
  'protocol/handle-policy.ts: letters.includes(': 'a handle of at most 253 characters, for each word of a fixed list',
  'protocol/ip-address.ts: text.includes(': 'its own text, once',
  'protocol/keys.ts: multicodecs[name].every(': 'two bytes',
  'protocol/lexicons/lexicons.ts: required.includes(': 'the parameters of a method of our own lexicons',
  'protocol/plc.ts: keys.find(': 'at most five rotation keys',
  'protocol/space-scopes.ts: scope.actions.includes(': 'five actions',
  'protocol/space-scopes.ts: scope.collections?.includes(':
    'the collections in one grant, for each of at most 200 writes: an access token has room for some hundreds',
  'protocol/shared-scopes.ts: rpc?.lxm.includes(': 'the methods of each scope, for three transitional scopes',
  'protocol/shared-scopes.ts: rpc.lxm.filter(': 'the same',
  'protocol/shared-scopes.ts: mediaType.indexOf(': 'its own type, once',
  'protocol/shared-scopes.ts: collection.includes(': 'its own collections, once',
  'protocol/shared-scopes.ts: lxm.filter(': 'its own methods, once',
  'protocol/shared-scopes.ts: Array.from(names).filter(':
    'the methods that a delegation allows, of 4096 characters, for each of at most 500 scopes',
  'protocol/shared-scopes.ts: action.includes(': 'its own actions, once',
  'protocol/short-code.ts: randomBytes(8).find(': 'eight bytes',
}

test(
  'every search in a loop is listed with what bounds it',
  () => {
    const present = sources
      .filter(({ path }) => !readsOwnInput(path))
      .flatMap(({ path, text }) => searchesOf(path, text))
    const faults = [
      ...present
        .filter((search) => !(search in searches))
        .map(
          (search) =>
            `${search} searches a list for each item of another. Put the list into a Set or a Map first, or list it here`,
        ),
      ...Object.keys(searches)
        .filter((search) => !present.includes(search))
        .map((search) => `${search} is not there any more. Take it off the list`),
    ]
    expect(faults).toEqual([])
  },
  MAX_MILLIS,
)

const found = (text: string) => searchesOf('x.ts', text)

test('a list that is searched for each item of another is found, also if a function does it', () => {
  expect(found('const both = (a, b) => a.filter((one) => b.includes(one))')).toEqual(['x.ts: b.includes('])
  expect(found('function both(a, b) { for (const one of a) if (b.indexOf(one) >= 0) return one }')).toEqual([
    'x.ts: b.indexOf(',
  ])
  expect(
    found(
      'const has = (b, one) => b.some((other) => other === one); const all = (a, b) => a.every((one) => has(b, one))',
    ),
  ).toEqual(['x.ts: b.some('])
  expect(found('function take(queue) { while (queue.length > 0) queue.shift() }')).toEqual(['x.ts: queue.shift('])
})

test('what is read once, or is part of the item, is not', () => {
  expect(found('const has = (a, one) => a.includes(one)')).toEqual([])
  expect(found('const parts = (a) => a.map((one) => one.tags.filter((tag) => tag.isOpen))')).toEqual([])
  expect(found("const known = ['a', 'b']; const all = (a) => a.every((one) => known.includes(one))")).toEqual([])
  expect(found('const all = (a, b) => { const known = new Set(b); return a.every((one) => known.has(one)) }')).toEqual(
    [],
  )
})
