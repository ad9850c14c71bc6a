/** Clients: what they do, and what they hold the server to. */
import { formatDidKey, parseDidKey, type PublicKey, type SigningKey } from '../../../src/protocol/keys.ts'
import { nextOperation, SIGNING_KEY_NAME, signOperation, stateOf } from '../../../src/protocol/plc.ts'
import { App, type AppSession } from './apps.ts'
import type { Reference } from './blobs.ts'
import type { Told, Write } from './ledger.ts'
import type { Session } from './sessions.ts'
import type { Copy, OpsPage, SpacePlace } from './spaces.ts'
import { actorNamed, type Actor } from './timeline.ts'
import type { Ask, Node, Reply, World } from './world.ts'
import { PASSWORD } from './world.ts'

export interface Holder {
  name: string
  did: string
  token: string
  key: PublicKey
  /** A key that the identity names above that of the server. */
  recovery: SigningKey | null
}

/** A client gives up waiting after this time. */
const PATIENCE_MILLIS = 12_000
const COLLECTION = 'com.example.note'
const SHARED_KEYS = 3
/** Pages of changes that a client reads at once. */
const MAX_PAGES = 20

/** What is asked, with the writes that it consists of. */
interface Change {
  nsid: string
  json: object
  writes: Write[]
  /** The upload of a blob to which the record refers. */
  upload?: Upload
  /** The session that asks for it, if it is not that of the account. */
  session?: Session
  /** The same of an app. */
  app?: AppSession
  /** Where it is, if that is a space. */
  place?: SpacePlace
}

/** When it began, and how many failovers there were before. */
interface Upload {
  begunAt: number
  era: number
}

type Named = { uri: string; cid: string }

export class Client {
  readonly actor: Actor
  readonly name: string
  readonly #app = new App(this)
  readonly counts = { acknowledged: 0, refused: 0, unknown: 0 }
  isDone = false
  #outstanding = 0

  constructor(
    readonly world: World,
    readonly index: number,
  ) {
    this.name = `client ${index + 1}`
    this.actor = actorNamed(this.name)
  }

  get #ledger() {
    return this.world.watch.ledger
  }

  start(): void {
    const { timeline } = this.world
    timeline.schedule(timeline.between(0, 300), this.actor, () => void this.#live())
  }

  async #live(): Promise<void> {
    const { world } = this
    const { timeline } = world
    try {
      const { maxActs = Infinity } = world.options.mood ?? {}
      for (let acts = 0; !world.isEnding && acts < maxActs; acts++) {
        if (timeline.now < world.quietUntil) await this.pause(world.quietUntil - timeline.now)
        await this.#act()
        await this.pause(timeline.happens(0.3) ? timeline.between(0, 5) : timeline.between(0, world.tempoMillis))
      }
      while (this.#outstanding > 0) await this.pause(100)
      this.isDone = true
    } catch (error) {
      world.fail(`${this.name} does not understand: ${(error as Error).stack}`)
    }
  }

  pause(millis: number): Promise<void> {
    return new Promise((resolve) => {
      this.world.timeline.schedule(millis, this.actor, resolve)
    })
  }

  #holder(): Holder {
    const { holders, timeline, options } = this.world
    return holders[timeline.random.below(options.mood?.writers ?? 2)]!
  }

  async #act(): Promise<void> {
    const { timeline, options } = this.world
    const act = timeline.random.below(100)
    const holder = this.#holder()
    if (options.mood?.absenceShare !== undefined && timeline.happens(options.mood.absenceShare))
      await this.#changeActivity(holder)
    else if (options.mood?.renameShare !== undefined && timeline.happens(options.mood.renameShare))
      await this.#changeIdentity(holder)
    else if (options.mood?.sessionShare !== undefined && timeline.happens(options.mood.sessionShare))
      await this.#useSession(holder)
    else if (options.mood?.appShare !== undefined && timeline.happens(options.mood.appShare)) await this.#useApp(holder)
    else if (options.mood?.blobShare !== undefined && timeline.happens(options.mood.blobShare))
      await this.#useBlob(holder)
    else if (options.mood?.spaceShare !== undefined && timeline.happens(options.mood.spaceShare))
      await this.#useSpace(this.world.spaces!.placeOf(holder))
    else if (act < 26) await this.#change(this.#creation(holder))
    else if (act < 38)
      // At the same time, at nodes that may be different ones.
      await Promise.all([this.#change(this.#creation(holder)), this.#change(this.#creation(holder))])
    else if (act < 54) await this.#change(this.#put(holder))
    else if (act < 62) await this.#change(this.#deletion(holder))
    else if (act < 70) await this.#change(this.#batch(holder))
    else if (act < 82) await this.#read(holder)
    else if (act < 92) await this.#swap(holder)
    else if (act < 94) await this.#race()
    else if (act < 97) await this.#resetPassword()
    else await this.#signIn()
  }

  #begin(holder: Holder, path: string | null, text: string | null): Write {
    return this.#ledger.begin({ did: holder.did, path, text, begunAt: this.world.timeline.now, by: this.name })
  }

  /** One text in four is that of a record which a server on SQLite stores apart. */
  #record(text: string, blob?: Reference): object {
    const isLarge = this.world.options.onFile === true && Number(text.split(' ')[1]) % 4 === 0
    const more = isLarge ? { more: 'x'.repeat(10_000) } : {}
    return { $type: COLLECTION, text, createdAt: '2026-01-01T00:00:00.000Z', blob, ...more }
  }

  #creation(holder: Holder): Change & { holder: Holder } {
    const text = this.#ledger.newText()
    return {
      holder,
      nsid: 'com.atproto.repo.createRecord',
      json: { repo: holder.did, collection: COLLECTION, record: this.#record(text), validate: false },
      writes: [this.#begin(holder, null, text)],
    }
  }

  #sharedKey(): string {
    return `shared-${this.world.timeline.random.below(SHARED_KEYS)}`
  }

  #put(holder: Holder, swapCommit?: string, blob?: Reference): Change & { holder: Holder } {
    const rkey = this.#sharedKey()
    const text = this.#ledger.newText()
    return {
      holder,
      nsid: 'com.atproto.repo.putRecord',
      json: {
        repo: holder.did,
        collection: COLLECTION,
        rkey,
        record: this.#record(text, blob),
        swapCommit,
        validate: false,
      },
      writes: [this.#begin(holder, `${COLLECTION}/${rkey}`, text)],
    }
  }

  #deletion(holder: Holder, rkey = this.#sharedKey()): Change & { holder: Holder } {
    return {
      holder,
      nsid: 'com.atproto.repo.deleteRecord',
      json: { repo: holder.did, collection: COLLECTION, rkey },
      writes: [this.#begin(holder, `${COLLECTION}/${rkey}`, null)],
    }
  }

  /**
   * Write at a machine that has taken over, and then ask the former one for what changes nothing: no segment shows who
   * may answer that.
   */
  async compare(node: Node, former: Node): Promise<void> {
    const { world } = this
    if (world.isEnding || !former.isUp) return
    this.#outstanding++
    const reply = await this.#change(this.#creation(this.#holder()), node)
    if (reply?.status === 200 && former.isUp) await this.#change(this.#deletion(this.#holder(), 'nothing'), former)
    this.#outstanding--
  }

  #batch(holder: Holder): Change & { holder: Holder } {
    const texts = [this.#ledger.newText(), this.#ledger.newText()]
    return {
      holder,
      nsid: 'com.atproto.repo.applyWrites',
      json: {
        repo: holder.did,
        validate: false,
        writes: texts.map((text) => ({
          $type: 'com.atproto.repo.applyWrites#create',
          collection: COLLECTION,
          value: this.#record(text),
        })),
      },
      writes: texts.map((text) => this.#begin(holder, null, text)),
    }
  }

  /** A node that serves; any one if none does. */
  node(): Node {
    const { world } = this
    const { serving, nodes, timeline } = world
    return timeline.random.of(serving.length > 0 ? serving : nodes)
  }

  ask(node: Node, path: string, ask: Omit<Ask, 'path'>): Promise<Reply> {
    this.#outstanding++
    return new Promise<Reply>((resolve) => {
      let isOver = false
      const end = (reply: Reply) => {
        if (isOver) return
        isOver = true
        this.#outstanding--
        resolve(reply)
      }
      this.world.timeline.schedule(PATIENCE_MILLIS, this.actor, () => end(null))
      node.ask(this.actor, { path, ...ask }, end)
    })
  }

  told(node: Node, reply: Reply): Exclude<Told, 'pending'> {
    const told = toldBy(reply)
    const learned = told !== 'acknowledged' || this.#isReliable(node) ? told : 'unknown'
    this.counts[learned]++
    return learned
  }

  #isReliable(node: Node): boolean {
    return this.world.pair?.isReliable(node) ?? true
  }

  /** Ask for a change. Returns the answer, or null if it says nothing for certain. */
  async #change(
    { holder, nsid, json, writes, upload, session, app, place }: Change & { holder: Holder },
    node: Node = this.node(),
  ): Promise<Reply> {
    const { world } = this
    const { timeline } = world
    const name = nsid.slice(nsid.lastIndexOf('.') + 1)
    const where = place === undefined ? '' : ` in ${place.skey}`
    const what = `${name} ${writes.map(({ text, path }) => (text === null ? path : `"${text}"`)).join(', ')} of ${holder.name}${where}`
    world.note(this.name, `asks ${node.name}: ${what}`)
    const reply =
      app === undefined
        ? await this.ask(node, `/xrpc/${nsid}`, { json, token: session?.accessJwt ?? holder.token })
        : await app.app.call(node, nsid, app, { json })
    const told = this.told(node, reply)
    if (told === 'acknowledged') world.pair?.acknowledged(node, writes[0]!.begunAt)
    const results = told === 'acknowledged' ? resultsIn(reply!.body) : []
    writes.forEach((write, i) => {
      const named = results[i]
      this.#ledger.end(write, told, timeline.now, named && { path: pathOf(named.uri), cid: named.cid })
    })
    world.note(
      this.name,
      `${told === 'unknown' ? 'never learns of' : `is told by ${node.name}: ${told}`} ${what}${wordsOf(reply)}`,
    )
    this.requireUnderstood(node, what, reply)
    const isCommitted = place === undefined && writes.some(({ text }) => text !== null)
    if (told === 'acknowledged' && isCommitted && reply!.body['commit'] === undefined)
      world.fail(`${node.name} acknowledges ${what} as a change that was there already`)
    if (told === 'refused') this.#judge(reply!, what, writes, { upload, session, app })
    if (told === 'acknowledged' && session !== undefined) this.#requireLive(session, writes[0]!.begunAt, node, what)
    if (told === 'acknowledged' && app !== undefined && !app.app.mayBe(app, 'live', writes[0]!.begunAt))
      world.fail(`${node.name} acknowledges ${what}, although ${app.name} has ended`)
    if (told === 'acknowledged') this.#requireActive(holder, writes[0]!.begunAt, `${node.name} acknowledges ${what}`)
    if (told === 'acknowledged' && place === undefined && writes.every(({ era }) => era === this.#ledger.era))
      world.watch.acknowledged(writes, reply!.body['commit'] as { cid: string; rev: string } | undefined)
    return told === 'unknown' ? null : reply
  }

  /** The database may be unable to do something at the moment, and for identities the directory. */
  requireUnderstood(node: Node, what: string, reply: Reply, { ofIdentity = false } = {}): void {
    if (reply === null || reply.status < 500 || reply.status === 503) return
    if (reply.status === 502 && ofIdentity && this.world.directory !== null) return
    this.world.fail(`${node.name} answers ${reply.status} to ${what}: ${JSON.stringify(reply.body)}`)
  }

  /** Whether a refusal can be true. */
  #judge(
    { status, body }: NonNullable<Reply>,
    what: string,
    [write]: readonly Write[],
    { upload, session, app }: Pick<Change, 'upload' | 'session' | 'app'>,
  ): void {
    const { world } = this
    if (status === 503 || status === 429) return
    if (body['error'] === 'InvalidSwap') return
    if (body['error'] === 'AccountDeactivated' && this.#mayBe(write!.did, 'inactive', write!.begunAt)) return
    if (body['error'] === 'BlobNotFound' && upload !== undefined && this.#mayBeGone(upload)) return
    if (session !== undefined && this.#isEnded(session, body, write!.begunAt)) return
    if (app !== undefined && app.app.isEnded(app, body, write!.begunAt)) return
    // Keys that the server makes are new.
    world.fail(`${this.name} is refused ${what}, which nothing stands against: ${JSON.stringify(body)}`)
  }

  /** Whether the account can have been so at some instant since then. */
  #mayBe(did: string, activity: 'active' | 'inactive', from: number): boolean {
    return this.#ledger.activity(did).mayBe(activity, from, this.world.timeline.now)
  }

  #requireActive({ name, did }: Holder, from: number, what: string): void {
    if (!this.#mayBe(did, 'active', from)) this.world.fail(`${what}, although ${name} is deactivated`)
  }

  async #changeActivity(holder: Holder): Promise<void> {
    const { world } = this
    const { timeline } = world
    const isActive = timeline.happens(0.5)
    const node = this.node()
    const setting = this.#ledger.activity(holder.did).begin(isActive ? 'active' : 'inactive', timeline.now)
    const what = `${isActive ? 'activate' : 'deactivate'} ${holder.name}`
    world.note(this.name, `asks ${node.name} to ${what}`)
    const method = isActive ? 'activateAccount' : 'deactivateAccount'
    const reply = await this.ask(node, `/xrpc/com.atproto.server.${method}`, {
      json: isActive ? null : {},
      token: holder.token,
    })
    const told = toldBy(reply)
    this.counts[told]++
    this.#ledger.activity(holder.did).end(setting, told, timeline.now)
    world.note(this.name, `is told by ${node.name}: ${told} ${what}${wordsOf(reply)}`)
    if (told === 'refused' && reply!.status !== 503 && reply!.status !== 429)
      world.fail(`${this.name} may not ${what}: ${JSON.stringify(reply!.body)}`)
    this.requireUnderstood(node, what, reply)
  }

  async #read(holder: Holder): Promise<void> {
    const { world } = this
    const { timeline } = world
    const paths = this.#ledger.paths.filter(({ did }) => did === holder.did)
    if (paths.length === 0) return
    const { path } = timeline.random.of(paths)
    const [collection, rkey] = path.split('/')
    const node = this.node()
    const from = timeline.now
    const { pair } = world
    const isServing = pair?.isServing(node) ?? true
    const reply = await this.ask(
      node,
      `/xrpc/com.atproto.repo.getRecord?repo=${holder.did}&collection=${collection}&rkey=${rkey}`,
      {},
    )
    if (reply === null || reply.status === 503 || reply.status === 429) return
    if (reply.body['error'] === 'RepoDeactivated' && this.#mayBe(holder.did, 'inactive', from)) return
    const text = reply.status === 200 ? String((reply.body['value'] as { text: string }).text) : null
    if (text !== null) this.#requireActive(holder, from, `${node.name} shows ${path}`)
    if (text === null && reply.body['error'] !== 'RecordNotFound')
      return world.fail(`${node.name} answers a read of ${path} with ${reply.status} ${JSON.stringify(reply.body)}`)
    world.note(this.name, `reads at ${node.name}: ${path} is ${text === null ? 'not there' : `"${text}"`}`)
    // A machine that was replaced may answer reads until it notices.
    if (pair !== null && !(isServing && pair.isServing(node))) return
    const fault = this.#ledger.faultOf(holder.did, path, text, from, timeline.now)
    if (fault !== null) world.fail(`${this.name} reads at ${node.name} that ${fault}`)
  }

  /** Change a record on condition that nothing else has changed. */
  async #swap(holder: Holder): Promise<void> {
    const latest = await this.ask(this.node(), `/xrpc/com.atproto.sync.getLatestCommit?did=${holder.did}`, {})
    if (latest?.status !== 200) return
    const { cid, rev } = latest.body as { cid: string; rev: string }
    const { era } = this.#ledger
    const reply = await this.#change(this.#put(holder, cid))
    if (reply?.status !== 200 || era !== this.#ledger.era) return
    const { commit } = reply.body as { commit?: { rev: string } }
    if (commit !== undefined) this.world.watch.expectSince(holder.did, commit.rev, rev, this.name)
  }

  /** Open a session, or use, extend or end one. */
  async #useSession(holder: Holder): Promise<void> {
    const { sessions, timeline } = this.world
    const act = timeline.random.below(100)
    const { used } = sessions
    if (used.length === 0 || act < 15) return this.#openSession(holder)
    const session = timeline.random.of(used)
    if (act < 60) await this.#change({ ...this.#creation(session.holder), session })
    else if (act < 70) await this.#readSession(session)
    else if (act < 88) await this.#extend(session)
    else await this.#end(session)
  }

  /** Sign in to an app, or use, extend or end what it has. */
  async #useApp(holder: Holder): Promise<void> {
    const { apps, timeline } = this.world
    const act = timeline.random.below(100)
    const { used } = apps!
    if (used.length === 0 || act < 15) return this.#app.signIn(holder)
    const app = timeline.random.of(used)
    if (act < 45) await this.#change({ ...this.#creation(app.holder), app })
    else if (act < 65) await this.#app.look(app)
    else if (act < 90) await this.#app.extend(app)
    else await this.#app.revoke(app)
  }

  /** Whether a session can be refused in this way. */
  #isEnded(session: Session, body: Record<string, unknown>, from: number): boolean {
    const { sessions, timeline } = this.world
    return body['error'] === 'ExpiredToken' && sessions.mayBe(session, 'ended', from, timeline.now)
  }

  #requireLive(session: Session, from: number, node: Node, what: string): void {
    const { world } = this
    if (!world.sessions.mayBe(session, 'live', from, world.timeline.now))
      world.fail(`${node.name} acknowledges ${what}, although the session of ${session.name} has ended`)
  }

  async #openSession(holder: Holder): Promise<void> {
    const { world } = this
    const { sessions, timeline } = world
    const { era } = this.#ledger
    const name = sessions.newName()
    const made = await this.#askFor(`make ${name} for ${holder.name}`, 'com.atproto.server.createAppPassword', {
      json: { name },
      token: holder.token,
    })
    if (made === null) return
    const { password } = made as { password: string }
    // The app password may be revoked at this moment, and the session with it.
    const isRevoked = timeline.happens(0.3)
    const signIn = { json: { identifier: holder.did, password } }
    const [opened] = await Promise.all([
      this.#askFor(`sign in with ${name}`, 'com.atproto.server.createSession', signIn, { mayBeWrong: isRevoked }),
      isRevoked && this.pause(timeline.between(0, 30)).then(() => this.#end({ holder, name })),
    ])
    if (opened === null || era !== this.#ledger.era) return
    const { accessJwt, refreshJwt } = opened as Pick<Session, 'accessJwt' | 'refreshJwt'>
    sessions.opened({ holder, name, accessJwt, refreshJwt, era })
  }

  /** Returns what the answer says; null if it is no success. Only a server that is in trouble may refuse. */
  async #askFor(
    what: string,
    nsid: string,
    ask: Omit<Ask, 'path'>,
    { mayBeWrong = false } = {},
  ): Promise<Record<string, unknown> | null> {
    const node = this.node()
    const reply = await this.ask(node, `/xrpc/${nsid}`, ask)
    const told = this.told(node, reply)
    this.world.note(this.name, `is told by ${node.name}: ${told} ${what}${wordsOf(reply)}`)
    this.requireUnderstood(node, what, reply)
    if (told === 'refused' && ![503, 429].includes(reply!.status) && !(mayBeWrong && reply!.status === 401))
      this.world.fail(`${this.name} may not ${what}: ${JSON.stringify(reply!.body)}`)
    return told === 'acknowledged' ? reply!.body : null
  }

  async #readSession(session: Session): Promise<void> {
    const { world } = this
    const node = this.node()
    const from = world.timeline.now
    const reply = await this.ask(node, '/xrpc/com.atproto.server.getSession', { token: session.accessJwt })
    const what = `look at ${session.name}`
    if (reply !== null) world.note(this.name, `is told by ${node.name}: ${reply.status} ${what}`)
    this.requireUnderstood(node, what, reply)
    if (reply === null || [503, 429].includes(reply.status)) return
    if (reply.status === 200) return this.#requireLive(session, from, node, what)
    if (!this.#isEnded(session, reply.body, from))
      world.fail(`${this.name} may not ${what}: ${JSON.stringify(reply.body)}`)
  }

  /** Exchange the refresh token, twice at the same time now and then. */
  async #extend(session: Session): Promise<void> {
    const { world } = this
    const { timeline } = world
    if (session.isExtended) return
    session.isExtended = true
    const from = timeline.now
    const token = session.refreshJwt
    const once = async () => {
      const node = this.node()
      const what = `extend ${session.name}`
      const reply = await this.ask(node, '/xrpc/com.atproto.server.refreshSession', { json: null, token })
      const told = this.told(node, reply)
      world.note(this.name, `is told by ${node.name}: ${told} ${what}${wordsOf(reply)}`)
      this.requireUnderstood(node, what, reply)
      // A token that is exchanged later than its successor ends the session.
      if (told === 'unknown') session.state.end(session.state.begin('ended', from), 'unknown', timeline.now)
      if (told === 'acknowledged') this.#requireLive(session, from, node, what)
      if (told === 'acknowledged') Object.assign(session, tokensIn(reply!.body))
      if (told !== 'refused' || [503, 429].includes(reply!.status)) return
      if (!this.#isEnded(session, reply!.body, from))
        world.fail(`${this.name} may not ${what}: ${JSON.stringify(reply!.body)}`)
    }
    await Promise.all(timeline.happens(0.3) ? [once(), once()] : [once()])
    session.isExtended = false
  }

  /** Revoke the app password, or sign out. */
  async #end({ holder, name, refreshJwt }: Pick<Session, 'holder' | 'name'> & Partial<Session>): Promise<void> {
    const { world } = this
    const { timeline } = world
    const state = this.#ledger.sessionOf(name)
    const setting = state.begin('ended', timeline.now)
    const [nsid, ask] =
      refreshJwt === undefined || timeline.happens(0.5)
        ? ['com.atproto.server.revokeAppPassword', { json: { name }, token: holder.token }]
        : ['com.atproto.server.deleteSession', { json: null, token: refreshJwt }]
    const node = this.node()
    const reply = await this.ask(node, `/xrpc/${nsid}`, ask)
    const told = this.told(node, reply)
    state.end(setting, told, timeline.now)
    const what = `end ${name}`
    world.note(this.name, `is told by ${node.name}: ${told} ${what}${wordsOf(reply)}`)
    this.requireUnderstood(node, what, reply)
    if (told === 'refused' && ![503, 429].includes(reply!.status))
      world.fail(`${this.name} may not ${what}: ${JSON.stringify(reply!.body)}`)
  }

  /** Upload a blob and refer to it, remove what refers to one, or read one. */
  async #useBlob(holder: Holder): Promise<void> {
    const { timeline } = this.world
    const act = timeline.random.below(10)
    if (act < 5) await this.#upload(holder)
    else if (act < 8) await this.#change(timeline.happens(0.5) ? this.#deletion(holder) : this.#put(holder))
    else await this.#download(holder)
  }

  async #upload(holder: Holder): Promise<void> {
    const { world } = this
    const { timeline } = world
    const { cid, ...content } = world.blobs!.any
    const node = this.node()
    const upload = { begunAt: timeline.now, era: this.#ledger.era }
    const what = `upload ${cid.slice(-6)} of ${holder.name}`
    world.note(this.name, `asks ${node.name}: ${what}`)
    const reply = await this.ask(node, '/xrpc/com.atproto.repo.uploadBlob', { content, token: holder.token })
    const told = this.told(node, reply)
    world.note(this.name, `is told by ${node.name}: ${told} ${what}${wordsOf(reply)}`)
    this.requireUnderstood(node, what, reply)
    if (told === 'refused' && ![503, 429].includes(reply!.status))
      world.fail(`${this.name} may not ${what}: ${JSON.stringify(reply!.body)}`)
    if (told !== 'acknowledged') return
    const blob = reply!.body['blob'] as Reference
    if (blob.ref.$link !== cid) world.fail(`${node.name} says that ${cid} is ${blob.ref.$link}`)
    world.blobs!.acknowledged(holder.did, cid, upload.begunAt)
    if (timeline.happens(0.2)) return
    await this.pause(timeline.between(0, 1000))
    const place = world.spaces !== null && timeline.happens(0.5) ? world.spaces.placeOf(holder) : null
    await this.#change({ ...(place === null ? this.#put(holder, undefined, blob) : this.#putIn(place, blob)), upload })
  }

  #mayBeGone({ begunAt, era }: Upload): boolean {
    return era !== this.#ledger.era || this.world.blobs!.mayBeGone(begunAt)
  }

  /** What is read under a CID has it. Whether it has to be there, the rows tell. */
  async #download({ did, name }: Holder): Promise<void> {
    const { world } = this
    const { cid, bytes } = world.blobs!.any
    const node = this.node()
    const reply = await this.ask(node, `/xrpc/com.atproto.sync.getBlob?did=${did}&cid=${cid}`, {})
    if (reply === null) return
    world.note(this.name, `reads ${cid.slice(-6)} of ${name} at ${node.name}: ${reply.status}${wordsOf(reply)}`)
    this.requireUnderstood(node, `a read of ${cid}`, reply)
    if (reply.status === 200 && reply.body['message'] !== Buffer.from(bytes).toString())
      world.fail(`${node.name} sends something else for ${cid}: ${String(reply.body['message'])}`)
  }

  /** Write in a space, read there, or follow what has changed. */
  async #useSpace(place: SpacePlace): Promise<void> {
    const { timeline } = this.world
    const act = timeline.random.below(100)
    if (act < 20) await this.#change(this.#creationIn(place))
    else if (act < 30) await Promise.all([this.#change(this.#creationIn(place)), this.#change(this.#putIn(place))])
    else if (act < 45) await this.#change(this.#putIn(place))
    else if (act < 55) await this.#change(this.#deletionIn(place))
    else if (act < 68) await this.#change(this.#batchIn(place))
    else if (act < 78) await this.#list(place)
    else await this.#follow(place)
  }

  #writeIn(
    { did, holder, space }: SpacePlace,
    method: string,
    json: object,
    ...writes: [string | null, string | null][]
  ) {
    const { timeline } = this.world
    return {
      holder,
      nsid: `com.atproto.space.${method}`,
      json: { space, repo: holder.did, ...json },
      writes: writes.map(([path, text]) =>
        this.#ledger.begin({ did, path, text, begunAt: timeline.now, by: this.name }),
      ),
    }
  }

  #creationIn(place: SpacePlace): Change & { holder: Holder } {
    const text = this.#ledger.newText()
    const json = { collection: COLLECTION, record: this.#record(text), validate: false }
    return { ...this.#writeIn(place, 'createRecord', json, [null, text]), place }
  }

  #putIn(place: SpacePlace, blob?: Reference): Change & { holder: Holder } {
    const rkey = this.#sharedKey()
    const text = this.#ledger.newText()
    const json = { collection: COLLECTION, rkey, record: this.#record(text, blob), validate: false }
    return { ...this.#writeIn(place, 'putRecord', json, [`${COLLECTION}/${rkey}`, text]), place }
  }

  #deletionIn(place: SpacePlace): Change & { holder: Holder } {
    const rkey = this.#sharedKey()
    const json = { collection: COLLECTION, rkey }
    return { ...this.#writeIn(place, 'deleteRecord', json, [`${COLLECTION}/${rkey}`, null]), place }
  }

  #batchIn(place: SpacePlace): Change & { holder: Holder } {
    const texts = [this.#ledger.newText(), this.#ledger.newText()]
    const writes = texts.map((text) => ({
      $type: 'com.atproto.space.applyWrites#create',
      collection: COLLECTION,
      value: this.#record(text),
    }))
    const json = { writes, validate: false }
    return {
      ...this.#writeIn(place, 'applyWrites', json, ...texts.map((text) => [null, text] as [null, string])),
      place,
    }
  }

  /** Ask for something in a space. Returns null if there is no answer, or none that says anything. */
  async #readIn(
    { space, holder, skey }: SpacePlace,
    method: string,
    more: object,
  ): Promise<Record<string, unknown> | null> {
    const node = this.node()
    const query = new URLSearchParams({ space, repo: holder.did, ...more })
    const reply = await this.ask(node, `/xrpc/com.atproto.space.${method}?${query}`, { token: holder.token })
    const what = `${method} of ${holder.name} in ${skey}`
    if (reply !== null) this.world.note(this.name, `reads at ${node.name}: ${what}: ${reply.status}`)
    this.requireUnderstood(node, what, reply)
    if (reply === null || [503, 429].includes(reply.status)) return null
    if (reply.status !== 200 && reply.body['error'] !== 'RepoNotFound')
      this.world.fail(`${this.name} may not read ${what}: ${JSON.stringify(reply.body)}`)
    return reply.status === 200 ? reply.body : {}
  }

  async #list(place: SpacePlace): Promise<void> {
    const from = this.world.timeline.now
    const found = await this.#readIn(place, 'listRecords', { limit: '1000' })
    if (found === null) return
    const { records = [] } = found as { records?: { collection: string; rkey: string; value: { text: string } }[] }
    this.#requireIn(
      place,
      new Map(records.map((one) => [`${one.collection}/${one.rkey}`, one.value.text])),
      from,
      'list',
    )
  }

  /** What was found there can be all that there was at an instant since then. */
  #requireIn({ did }: SpacePlace, found: ReadonlyMap<string, string>, from: number, how: string): void {
    const { world } = this
    const known = this.#ledger.paths.filter((one) => one.did === did).map(({ path }) => path)
    for (const path of new Set([...found.keys(), ...known])) {
      // A client that has no answer yet does not know what its record is called.
      const write = this.#ledger.byText.get(found.get(path) ?? '')
      if (write?.path === null && write.told !== 'refused') continue
      const fault = this.#ledger.faultOf(did, path, found.get(path) ?? null, from, world.timeline.now)
      if (fault !== null) world.fail(`${this.name} finds with a ${how} that ${fault}`)
    }
  }

  /** Read what has changed since the last time, page by page, to the commit at its end. */
  async #follow(place: SpacePlace): Promise<void> {
    const { world } = this
    const { timeline } = world
    const copy = world.spaces!.copyOf(this.name, place)
    const limit = String(timeline.random.of([2, 5, 1000]))
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const from = timeline.now
      const since = copy.cursor !== null ? { cursor: copy.cursor } : copy.rev === '' ? {} : { since: copy.rev }
      const page = await this.#readIn(place, 'listRepoOps', { limit, ...since })
      if (page === null || copy.era !== this.#ledger.era || page['ops'] === undefined) return
      if (this.#take(copy, page as unknown as OpsPage, from)) return
    }
  }

  /** Returns whether it was the last page. */
  #take(copy: Copy, { ops, cursor, commit }: OpsPage, from: number): boolean {
    const { world } = this
    const { name, did, key } = copy.place.holder
    const faults = ops.map((op) => copy.take(op))
    copy.cursor = cursor ?? null
    const keys = world.directory?.keysSince(did, from).map((named) => parseDidKey(named)!) ?? [key]
    if (commit !== undefined) faults.push(copy.compare(commit, keys))
    const [fault = null] = faults.filter((one) => one !== null)
    if (fault !== null) world.fail(`${this.name} follows ${name} in ${copy.place.skey}: ${fault}`)
    if (commit === undefined) return false
    const texts = [...copy.entries].map(([path, { text }]) => [path, text!] as const)
    this.#requireIn(copy.place, new Map(texts), from, 'page of changes')
    return true
  }

  async #changeIdentity(holder: Holder): Promise<void> {
    const { timeline } = this.world
    if (holder.recovery !== null && timeline.happens(0.4)) await this.#rotate(holder, holder.recovery)
    else if (timeline.happens(0.6)) await this.#rename(holder)
    else await this.#resolve(this.#anyHandle(holder))
  }

  /** Replace the signing key, as a wallet does, which repeats a request that it got no answer to. */
  async #rotate(holder: Holder, recovery: SigningKey): Promise<void> {
    const { world } = this
    const { did, token } = holder
    const directory = world.directory!
    const staged = await this.ask(this.node(), '/v1/repo-keys/rotation', { json: null, token })
    if (staged?.status !== 200) return
    const { signingKey } = staged.body as { signingKey: string }
    const newest = directory.newestOf(did)!
    const { verificationMethods, rotationKeys } = stateOf(newest)!
    const operation = signOperation(
      nextOperation(newest, {
        verificationMethods: { ...verificationMethods, [SIGNING_KEY_NAME]: signingKey },
        rotationKeys: [formatDidKey(recovery.publicKey), signingKey, rotationKeys.at(-1)!],
      })!,
      recovery,
    )
    const register = this.#ledger.keyOf(did, formatDidKey(holder.key))
    const setting = register.begin(signingKey, world.timeline.now)
    let told: Exclude<Told, 'pending'> = 'unknown'
    for (let tries = 0; tries < 2 && told === 'unknown'; tries++) {
      const node = this.node()
      const what = `let ${holder.name} sign with ${signingKey.slice(-6)}`
      world.note(this.name, `asks ${node.name} to ${what}`)
      const reply = await this.ask(node, '/v1/repo-keys/rotation/complete', { json: { operation }, token })
      // It may refuse the second request, and have done what the first one asked for.
      told = tries > 0 && reply?.status !== 200 ? 'unknown' : toldBy(reply)
      this.counts[told]++
      world.note(this.name, `is told by ${node.name}: ${told} ${what}${wordsOf(reply)}`)
      this.requireUnderstood(node, what, reply, { ofIdentity: true })
    }
    register.end(setting, told, world.timeline.now)
  }

  /** A handle that others want too. */
  #wanted(): string {
    return `wanted-${this.world.timeline.random.below(2)}.test`
  }

  #anyHandle({ name }: Holder): string {
    const { timeline } = this.world
    return timeline.happens(0.4) ? this.#wanted() : timeline.random.of([`${name}.test`, `${name}-too.test`])
  }

  async #rename(holder: Holder): Promise<void> {
    const { world } = this
    const { timeline } = world
    const handle = this.#anyHandle(holder)
    const node = this.node()
    const register = this.#ledger.handleOf(holder)
    const setting = register.begin(handle, timeline.now)
    const what = `name ${holder.name} ${handle}`
    world.note(this.name, `asks ${node.name} to ${what}`)
    const reply = await this.ask(node, '/xrpc/com.atproto.identity.updateHandle', {
      json: { handle },
      token: holder.token,
    })
    const told = toldBy(reply)
    this.counts[told]++
    register.end(setting, told, timeline.now)
    world.note(this.name, `is told by ${node.name}: ${told} ${what}${wordsOf(reply)}`)
    if (told === 'refused' && ![503, 429].includes(reply!.status) && reply!.body['error'] !== 'HandleNotAvailable')
      world.fail(`${this.name} may not ${what}: ${JSON.stringify(reply!.body)}`)
    this.requireUnderstood(node, what, reply, { ofIdentity: true })
  }

  /** Ask whose the handle is. */
  async #resolve(handle: string): Promise<void> {
    const { world } = this
    const { timeline } = world
    const node = this.node()
    const from = timeline.now
    const reply = await this.ask(node, `/xrpc/com.atproto.identity.resolveHandle?handle=${handle}`, {})
    if (reply?.status !== 200) return
    const { did } = reply.body as { did: string }
    world.note(this.name, `reads at ${node.name}: ${handle} is ${did}`)
    const holder = world.holders.find((one) => one.did === did)
    if (holder !== undefined && !this.#ledger.handleOf(holder).mayBe(handle, from, timeline.now))
      world.fail(`${node.name} says that ${handle} is ${holder.name}, who has another handle`)
  }

  /** Two clients want the same handle. */
  async #race(): Promise<void> {
    const { world } = this
    const { timeline } = world
    const handle = this.#wanted()
    const { era } = this.#ledger
    const tries = await Promise.all(
      [1, 2].map(async (one) => {
        const node = this.node()
        const email = `${this.index}-${Math.floor(timeline.now * 1000)}-${one}@example.com`
        const reply = await this.ask(node, '/xrpc/com.atproto.server.createAccount', {
          json: { handle, email, password: PASSWORD },
        })
        const told = this.told(node, reply)
        world.note(this.name, `signs up as ${handle} at ${node.name}: ${told}${wordsOf(reply)}`)
        this.requireUnderstood(node, 'a sign-up', reply, { ofIdentity: true })
        return { told, did: reply?.body['did'] }
      }),
    )
    if (era !== this.#ledger.era) return
    for (const { told, did } of tries) if (told === 'acknowledged') world.watch.signedUp(handle, String(did), this.name)
  }

  /** A person forgets the password, and uses the code that comes by mail twice at once. */
  async #resetPassword(): Promise<void> {
    const { world } = this
    const { mails } = world
    const known = mails.length
    const { era } = this.#ledger
    const ask = (method: string, json: object, node = this.node()) =>
      this.ask(node, `/xrpc/com.atproto.server.${method}`, { json })
    const asked = await ask('requestPasswordReset', { email: 'carol@example.com' })
    if (asked?.status !== 200) return
    const find = () => mails.slice(known).find(({ to }) => to === 'carol@example.com')
    for (let looks = 0; looks < 20 && find() === undefined; looks++) await this.pause(100)
    const [token] = /^[A-Z2-7]{5}-[A-Z2-7]{5}$/m.exec(find()?.text ?? '') ?? []
    if (token === undefined) return
    const nodes = [this.node(), this.node()]
    const uses = await Promise.all(nodes.map((node) => ask('resetPassword', { token, password: PASSWORD }, node)))
    world.note(this.name, `uses a code twice: ${uses.map((use) => use?.status ?? 'no answer').join(' and ')}`)
    const isTwice = uses.every((use, i) => use?.status === 200 && this.#isReliable(nodes[i]!))
    if (era === this.#ledger.era && isTwice) world.fail(`${this.name} used a code twice`)
  }

  async #signIn(): Promise<void> {
    const { world } = this
    const node = this.node()
    const reply = await this.ask(node, '/xrpc/com.atproto.server.createSession', {
      json: { identifier: 'carol.test', password: PASSWORD },
    })
    if (reply !== null) world.note(this.name, `signs in at ${node.name}: ${reply.status}${wordsOf(reply)}`)
    if (reply?.status === 200) world.watch.signedIn()
  }
}

function toldBy(reply: Reply): Exclude<Told, 'pending'> {
  if (reply === null) return 'unknown'
  if (reply.status === 200) return 'acknowledged'
  if (/may or may not|may still take effect/.test(String(reply.body['message']))) return 'unknown'
  // The directory may have done what it reports as an error.
  return reply.status === 500 || reply.status === 502 ? 'unknown' : 'refused'
}

const resultsIn = (body: Record<string, unknown>): Named[] =>
  'results' in body ? (body['results'] as Named[]) : 'uri' in body ? [body as unknown as Named] : []

const tokensIn = ({ accessJwt, refreshJwt }: Record<string, unknown>): object => ({ accessJwt, refreshJwt })

/** Of a record: `collection/rkey`. */
const pathOf = (uri: string): string => uri.split('/').slice(-2).join('/')

const wordsOf = (reply: Reply): string =>
  reply === null
    ? ''
    : reply.status === 200
      ? uriIn(reply.body)
      : ` (${reply.status} ${String(reply.body['message'] ?? reply.body['error'])})`

function uriIn(body: Record<string, unknown>): string {
  const uris = resultsIn(body).map(({ uri }) => uri.split('/').at(-1))
  return uris.length === 0 ? '' : ` as ${uris.join(', ')}`
}
