import type { Feature, RecordSource } from '../../../http/feature.ts'
import type { Reader } from '../../../platform/database/database.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { deleteRepo, repoHead } from './repo.ts'
import { listPiece, readRecord } from './record-store.ts'
import { repoHeads } from './repo-store.ts'
import { readRoutes } from './read-routes.ts'
import { abandonedRepoSweep } from './abandoned-repo-sweep.ts'
import { writeRoutes } from './write-routes.ts'

export const repo: Feature = {
  name: 'repo',
  routes: [...writeRoutes, ...readRoutes],
  sweeps: [abandonedRepoSweep],
  records: { repos: repoHeads, page: recordPiece, find: readRecord },
  forgetAccount: (_, tx, did) => deleteRepo(tx, did),
}

async function recordPiece(reader: Reader, did: Did, after: string, limit: number): ReturnType<RecordSource['page']> {
  const repo = await repoHead(reader, did)
  return repo === null ? { records: [], isEnd: true } : listPiece(reader, repo.id, after, limit)
}
