/** The faults that befall a world: which, when and whom is decided by its seed. */
import type { Actor } from './timeline.ts'
import type { World } from './world.ts'

type Fault = (world: World) => string

/** Of an outage, in milliseconds. */
export const longestOutage = ({ isLong }: World) => (isLong ? 16_000 : 2000)
/** Nobody thaws early: what has waited would then come after what has not. */
function freeze(actor: Actor, until: number): void {
  actor.frozenUntil = Math.max(actor.frozenUntil, until)
}

const anyNode = (world: World) => world.timeline.random.of(world.nodes)

const faults: Readonly<Record<string, Fault>> = {
  crash(world) {
    const node = anyNode(world)
    node.restart(world.timeline.between(100, 4000))
    return `${node.name} is killed`
  },
  freeze(world) {
    const node = anyNode(world)
    const millis = world.timeline.between(100, longestOutage(world))
    freeze(node.actor, world.timeline.now + millis)
    return `${node.name} freezes for ${(millis / 1000).toFixed(1)} s`
  },
  silence(world) {
    const node = anyNode(world)
    const millis = world.timeline.between(100, longestOutage(world))
    node.wire.silentUntil = world.timeline.now + millis
    return `the line between ${node.name} and the database is silent for ${(millis / 1000).toFixed(1)} s`
  },
  cut(world) {
    const node = anyNode(world)
    const { timeline } = world
    for (const line of node.wire.lines) if (timeline.happens(0.7)) line.cut(timeline.happens(0.5))
    return `connections between ${node.name} and the database are cut`
  },
  lag(world) {
    const { timeline } = world
    const node = anyNode(world)
    for (const line of node.wire.lines) if (timeline.happens(0.3)) line.delay(timeline.between(20, 3000))
    return `some connections between ${node.name} and the database stutter`
  },
  slow(world) {
    const node = anyNode(world)
    node.wire.latencyMillis = world.timeline.between(20, 400)
    return `the line between ${node.name} and the database gets slow`
  },
  databaseRestart(world) {
    const { server, timeline } = world
    const millis = timeline.between(50, 4000)
    server.crash()
    server.isDown = true
    timeline.schedule(millis, world.fate, () => (server.isDown = false))
    return `the database crashes, and is back after ${(millis / 1000).toFixed(1)} s`
  },
  failover(world) {
    const { server, timeline } = world
    const lag = timeline.happens(0.3) ? 0 : timeline.between(1, 1500)
    server.follow()
    timeline.schedule(lag, world.fate, () => {
      const since = server.promote()
      if (since === null) return
      world.watch.failedOver(since)
      const millis = timeline.between(50, 3000)
      server.isDown = true
      timeline.schedule(millis, world.fate, () => (server.isDown = false))
      world.note(
        'fate',
        `the database is lost; a standby that is ${((timeline.now - since) / 1000).toFixed(1)} s behind is there after ${(millis / 1000).toFixed(1)} s`,
      )
    })
    return 'a standby of the database falls behind'
  },
  databaseStall(world) {
    const millis = world.timeline.between(100, longestOutage(world) / 2)
    freeze(world.server.actor, world.timeline.now + millis)
    return `the database stalls for ${(millis / 1000).toFixed(1)} s`
  },
  fullDisk(world) {
    const { server, timeline } = world
    const millis = timeline.between(200, 4000)
    server.isFull = true
    timeline.schedule(millis, world.fate, () => (server.isFull = false))
    return `the disk of the database is full for ${(millis / 1000).toFixed(1)} s`
  },
  clock(world) {
    const node = anyNode(world)
    const { timeline } = world
    const millis = Math.round(
      (timeline.happens(0.5) ? -1 : 1) * timeline.between(1, timeline.happens(0.3) ? 600_000 : 3000),
    )
    node.actor.skewMillis += millis
    return `the clock of ${node.name} jumps by ${(millis / 1000).toFixed(1)} s`
  },
  interruptedCommit(world) {
    world.server.cutsAtCommit++
    return 'the next COMMIT will be interrupted'
  },
  crashAtCommit(world) {
    world.server.crashesAtCommit++
    return 'the next node to send COMMIT will be killed by it'
  },
}

/** Those that only befall worlds in a mood for them. */
const faultsOfMoods: Readonly<Record<string, Fault>> = {
  unheard(world) {
    const node = anyNode(world)
    const { timeline } = world
    const millis = timeline.between(500, 2 * longestOutage(world))
    for (const line of node.wire.lines) if (line.settings.idle_session_timeout !== undefined) line.endUnheard(millis)
    return `the database ends the session of ${node.name}, which hears of it after ${(millis / 1000).toFixed(1)} s`
  },
  silenceAtCommit(world) {
    world.server.silencesAtCommit++
    return 'the line of the next node to send COMMIT will be silent'
  },
  stop(world) {
    const node = anyNode(world)
    node.stop(world.timeline.between(100, 1000))
    return `${node.name} is stopped, and starts again`
  },
  lossyDirectory({ timeline, directory, fate }) {
    directory!.lossShare = timeline.between(0.1, 0.6)
    timeline.schedule(timeline.between(500, 5000), fate, () => (directory!.lossShare = 0))
    return 'messages to the directory and from it are lost, or late'
  },
  lyingDirectory({ timeline, directory, fate }) {
    directory!.errorShare = timeline.between(0.2, 0.8)
    timeline.schedule(timeline.between(500, 5000), fate, () => (directory!.errorShare = 0))
    return 'the directory reports errors, whatever it has done'
  },
  directoryDown({ timeline, directory, fate }) {
    directory!.isDown = true
    timeline.schedule(timeline.between(500, 5000), fate, () => (directory!.isDown = false))
    return 'the directory refuses everything'
  },
}

/** Those of a server on SQLite. */
const faultsOnFile: Readonly<Record<string, Fault>> = {
  crash: faults['crash']!,
  freeze: faults['freeze']!,
  clock: faults['clock']!,
  powerCut(world) {
    const node = anyNode(world)
    world.cutPower(node)
    return `the machine of ${node.name} goes out`
  },
  powerCutAtFlush(world) {
    const node = anyNode(world)
    world.diskOf(node)!.cutsAtFlush++
    return `the power of ${node.name} will be cut during the next flush`
  },
  slowDisk(world) {
    const node = anyNode(world)
    world.diskOf(node)!.flushMillis = world.timeline.between(20, 400)
    return `the disk of ${node.name} gets slow`
  },
}

/** The one that serves, most of the time: what happens to the other one matters less. */
const machine = (world: World) =>
  world.pair !== null && world.timeline.happens(0.7) ? world.nodes[world.pair.serving]! : anyNode(world)
/** Of two machines, some are shorter than the lease is valid, and some longer. */
const outage = ({ timeline, pair }: World) =>
  timeline.between(100, pair === null ? 2000 : timeline.happens(0.5) ? 3000 : 9000)
const secs = (millis: number) => `${(millis / 1000).toFixed(1)} s`

/** Those of a bucket, and of the lines to it. */
const faultsOfBucket: Readonly<Record<string, Fault>> = {
  silentBucket(world) {
    const { actor, name } = machine(world)
    const millis = outage(world)
    world.bucket!.lineOf(actor).silentUntil = world.timeline.now + millis
    return `the line between ${name} and the bucket is silent for ${secs(millis)}`
  },
  cutOff(world) {
    const { actor, name } = machine(world)
    const millis = outage(world)
    world.bucket!.lineOf(actor).cutUntil = world.timeline.now + millis
    return `${name} is cut off from the bucket for ${secs(millis)}`
  },
  slowBucket(world) {
    const bucket = world.bucket!
    bucket.latencyMillis = world.timeline.between(50, 1200)
    world.timeline.schedule(outage(world), world.fate, () => (bucket.latencyMillis = 15))
    return `the bucket takes up to ${secs(bucket.latencyMillis)}`
  },
  lyingBucket(world) {
    const bucket = world.bucket!
    bucket.errorShare = world.timeline.between(0.05, 0.5)
    bucket.listsLateMillis = world.timeline.between(0, 5000)
    world.timeline.schedule(outage(world), world.fate, () => (bucket.errorShare = bucket.listsLateMillis = 0))
    return `the bucket reports what is not so in ${Math.round(100 * bucket.errorShare)} % of its answers, and lists late`
  },
  bucketDown(world) {
    const bucket = world.bucket!
    const millis = outage(world)
    bucket.isDown = true
    world.timeline.schedule(millis, world.fate, () => (bucket.isDown = false))
    return `the bucket refuses everything for ${secs(millis)}`
  },
}

/** How long clients pause, and when the line is silent, so that nothing is on its way. */
const QUIET_MILLIS = 1500
const SILENCE_MILLIS = 200

/** Those of two machines with a bucket. */
const faultsOfPair: Readonly<Record<string, Fault>> = {
  clock: faults['clock']!,
  powerCutAtFlush: faultsOnFile['powerCutAtFlush']!,
  /**
   * What is sent while it is written to the spool is at the bucket before it is in the spool. Somebody may start the
   * server again because it is slow.
   */
  slowDisk(world) {
    const { timeline, fate } = world
    const node = machine(world)
    const disk = world.diskOf(node)!
    disk.flushMillis = timeline.between(20, 400)
    disk.fileMillis = timeline.between(1, 50)
    if (timeline.happens(0.5))
      timeline.schedule(timeline.between(50, 4000), fate, () => {
        if (world.isEnding) return
        world.note('fate', `${node.name} is killed, and started again`)
        node.restart(timeline.between(50, 500))
      })
    return `the disk of ${node.name} gets slow`
  },
  crash(world) {
    const node = machine(world)
    node.restart(outage(world))
    return `${node.name} is killed`
  },
  powerCut(world) {
    const node = machine(world)
    world.cutPower(node)
    return `the machine of ${node.name} goes out`
  },
  stop(world) {
    const node = machine(world)
    node.stop(world.timeline.between(100, 1000))
    return `${node.name} is stopped, and starts again`
  },
  freeze(world) {
    const node = machine(world)
    const millis = outage(world)
    freeze(node.actor, world.timeline.now + millis)
    return `${node.name} freezes for ${secs(millis)}`
  },
  ...faultsOfBucket,
  /** The machine that serves may be out of reach, while clients pause. */
  promote(world) {
    const { timeline, nodes } = world
    const pair = world.pair!
    if (timeline.happens(0.3)) return pair.promote()
    const { actor, name } = nodes[pair.serving]!
    const millis = outage(world)
    world.quietUntil = timeline.now + QUIET_MILLIS
    timeline.schedule(SILENCE_MILLIS, world.fate, () => {
      pair.bucket.lineOf(actor).silentUntil = timeline.now + millis
      world.note('fate', pair.promote())
    })
    return `clients pause, and the line between ${name} and the bucket will be silent for ${secs(millis)}`
  },
}

/** Plan the faults of a world. Returns the function that ends those that last. */
export function faultsOf(world: World): () => void {
  const { timeline, befallen, millis } = world
  // A world has few kinds of faults, so that each of them is alone sometimes.
  const possible = world.pair !== null ? faultsOfPair : world.disk === null ? faults : faultsOnFile
  const names = Object.keys(possible)
  const kinds =
    world.options.mood?.faults ?? Array.from({ length: timeline.random.below(4) }, () => timeline.random.of(names))
  const count = kinds.length === 0 ? 0 : 1 + timeline.random.below(6)
  for (let i = 0; i < count; i++) {
    const kind = timeline.random.of(kinds)
    timeline.schedule(timeline.between(0, world.options.mood?.faultMillis ?? millis * 0.9), world.fate, () => {
      if (world.isEnding) return
      befallen.push(kind)
      const what = (possible[kind] ?? faultsOfMoods[kind] ?? faultsOfBucket[kind])!(world)
      world.note('fate', what)
    })
  }
  return () => {
    for (const node of world.nodes) {
      node.actor.skewMillis = 0
      node.wire.silentUntil = 0
      node.wire.latencyMillis = 1.5
      node.wire.lossShare = 0
    }
    world.server.isFull = false
    world.server.isDown = false
    for (const disk of world.disks) disk.cutsAtFlush = 0
    world.bucket?.heal()
    world.directory?.heal()
    world.server.stallShare = 0
    world.server.cutsAtCommit = 0
    world.server.crashesAtCommit = 0
    world.server.silencesAtCommit = 0
  }
}
