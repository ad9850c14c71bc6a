/** ELF files of 64 bits, little-endian. Source: System V ABI, "ELF Header" and "Program Header". */

const MAGIC = 0x7f_45_4c_46
/** Offsets in the file's header, in bytes, of the fields that are read or changed here. */
const header = { segments: 32, sections: 40, segmentSize: 54, segmentCount: 56, sectionCount: 60, sectionOfNames: 62 }
/** The same for the header of a segment. */
const segment = { offsetInFile: 8, sizeInFile: 32, sizeInMemory: 40 }

export const isElf = (file: Buffer): boolean => file.readUInt32BE(0) === MAGIC

export interface Segment {
  /** Offset of its header. */
  at: number
  start: number
  end: number
}

export function segmentsOf(file: Buffer): Segment[] {
  const first = Number(file.readBigUInt64LE(header.segments))
  const size = file.readUInt16LE(header.segmentSize)
  return Array.from({ length: file.readUInt16LE(header.segmentCount) }, (_, index) => {
    const at = first + index * size
    const start = Number(file.readBigUInt64LE(at + segment.offsetInFile))
    return { at, start, end: start + Number(file.readBigUInt64LE(at + segment.sizeInFile)) }
  })
}

/** Change where a segment ends, in the file and in memory. */
export function endAt(file: Buffer, { at, start }: Segment, end: number): void {
  for (const field of [segment.sizeInFile, segment.sizeInMemory]) file.writeBigUInt64LE(BigInt(end - start), at + field)
}

/** Remove the reference to the list of sections, which only debuggers read. */
export function forgetSections(file: Buffer): void {
  file.writeBigUInt64LE(0n, header.sections)
  file.writeUInt16LE(0, header.sectionCount)
  file.writeUInt16LE(0, header.sectionOfNames)
}
