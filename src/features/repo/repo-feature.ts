import type { Feature } from '../../http/feature.ts'
import { readRoutes } from './read-routes.ts'
import { repoRemainsSweep } from './repo-remains-sweep.ts'
import { writeRoutes } from './write-routes.ts'

export const repo: Feature = { name: 'repo', routes: [...writeRoutes, ...readRoutes], sweeps: [repoRemainsSweep] }
