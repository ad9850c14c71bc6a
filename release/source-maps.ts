/**
 * Source maps of an executable, as the bundler embeds them. Beside the names and positions that a stack trace needs,
 * they hold the text of every source file, with comments. The text would only be shown by errors that nothing catches,
 * so it is cut out here, which makes the executable 3 MiB smaller.
 *
 * The bundler appends a graph of modules to the runtime:
 *
 *     length of the graph (8 bytes), bytecode, source maps, contents, names, table of modules, tail, end mark
 *
 * All offsets count from the start of the graph. A source map has the number of files, the length of the map, the
 * offset and length of each file's name and then of its (compressed) text, the map, the names and the texts. The layout
 * belongs to one version of the bundler, so anything unexpected fails the build.
 */
import { zstdCompressSync } from 'node:zlib'
import { endAt, forgetSections, isElf, segmentsOf } from './elf.ts'

const END_MARK = '\n---- Bun! ----\n'
/** Before the end mark: length of what precedes (8 bytes), table (offset, length), entry point, arguments, flags. */
const TAIL_BYTES = 32
const MODULE_BYTES = 52
const POINTER_BYTES = 8
/** Offsets of the pointers in a module. */
const modulePointers = { name: 0, contents: 8, sourceMap: 16, bytecode: 24, information: 32, origin: 40 }
const noText = zstdCompressSync('')

/** Returns a Linux executable without the text of its sources. Executables for other systems stay as they are. */
export function withoutSourceText(file: Buffer): Buffer {
  if (!isElf(file)) return file
  const end = file.lastIndexOf(END_MARK)
  const length = Number(file.readBigUInt64LE(end - TAIL_BYTES))
  const start = end - TAIL_BYTES - length
  if (end < 0 || Number(file.readBigUInt64LE(start - 8)) !== end + END_MARK.length - start)
    throw new Error('the executable has no graph of modules where it was expected')

  const graph = smaller(file.subarray(start, end), length)
  const before = Buffer.from(file.subarray(0, start))
  before.writeBigUInt64LE(BigInt(graph.length + END_MARK.length), start - 8)
  // Only names of functions and the list of sections follow the graph, and only debuggers read them.
  endSegmentAt(before, end + END_MARK.length, start + graph.length + END_MARK.length)
  return Buffer.concat([before, graph, Buffer.from(END_MARK)])
}

/** `length`: the length of the graph without its tail. */
function smaller(graph: Buffer, length: number): Buffer {
  const table = { at: graph.readUInt32LE(length + 8), bytes: graph.readUInt32LE(length + 12) }
  if (table.bytes % MODULE_BYTES !== 0) throw new Error('the table of modules has another form')
  const modules = Array.from({ length: table.bytes / MODULE_BYTES }, (_, index) => table.at + index * MODULE_BYTES)
  const pointer = (at: number) => ({ at: graph.readUInt32LE(at), bytes: graph.readUInt32LE(at + 4) })

  const kept: Buffer[] = []
  /** How far the data from each offset on moves to the front. */
  const moves: { from: number; by: number }[] = []
  let copied = 0
  let moved = 0
  const maps = modules.map((module) => pointer(module + modulePointers.sourceMap)).filter(({ bytes }) => bytes > 0)
  const firstMap = Math.min(...maps.map(({ at }) => at))
  for (const { at, bytes } of maps.toSorted((a, b) => a.at - b.at)) {
    const map = withoutText(graph.subarray(at, at + bytes))
    kept.push(graph.subarray(copied, at), map)
    copied = at + bytes
    moved += bytes - map.length
    moves.push({ from: copied, by: moved })
  }
  kept.push(graph.subarray(copied))
  const result = Buffer.concat(kept)
  const placeOf = (at: number) => at - (moves.findLast(({ from }) => from <= at)?.by ?? 0)

  for (const module of modules)
    for (const [name, offset] of Object.entries(modulePointers)) {
      const { at, bytes } = pointer(module + offset)
      // Bytecode must stay aligned.
      if (name === 'bytecode' && at > firstMap) throw new Error('bytecode follows source maps')
      const place = placeOf(module) + offset
      result.writeUInt32LE(placeOf(at), place)
      if (name === 'sourceMap' && bytes > 0)
        result.writeUInt32LE(bytes - (placeOf(at) + bytes - placeOf(at + bytes)), place + 4)
    }
  const tail = placeOf(length)
  result.writeBigUInt64LE(BigInt(tail), tail)
  result.writeUInt32LE(placeOf(table.at), tail + 8)
  result.writeUInt32LE(placeOf(graph.readUInt32LE(length + 20)), tail + 20)
  return result
}

/** Returns a source map in which all files share one empty text. */
function withoutText(map: Buffer): Buffer {
  const files = map.readUInt32LE(0)
  if (files === 0) return map
  const texts = 8 + files * POINTER_BYTES
  const strings = texts + files * POINTER_BYTES + map.readUInt32LE(4)
  // Names come first, in the order of the files, then all texts.
  const namesEnd = map.readUInt32LE(texts - POINTER_BYTES) + map.readUInt32LE(texts - 4)
  if (namesEnd < strings || namesEnd > map.length) throw new Error('a source map has another form')
  const result = Buffer.concat([map.subarray(0, namesEnd), noText])
  for (let file = 0; file < files; file++) {
    result.writeUInt32LE(namesEnd, texts + file * POINTER_BYTES)
    result.writeUInt32LE(noText.length, texts + file * POINTER_BYTES + 4)
  }
  return result
}

/** The graph ended at `from`, in the last page of a segment, and will end at `to`. */
function endSegmentAt(file: Buffer, from: number, to: number): void {
  const segment = segmentsOf(file).find(({ start, end }) => start < from && end >= from)
  if (segment === undefined) throw new Error('no segment contains the graph of modules')
  endAt(file, segment, to)
  forgetSections(file)
}
