/** The part of the account page about devices that get a push when the account needs its holder. */
import { html, plainName, type Html } from '../../../http/html.ts'
import type { Context } from '../../../platform/context.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { pushDevicesOf, removeRegistration, type PushRegistration } from '../../push/notifications/notifications.ts'
import { accountForm, outcomeOf, partOf, type AccountView } from './account-view.ts'
import { day, hidden } from '../page-parts/page-parts.ts'
import { pushTexts as texts } from './push-texts.ts'

/** Most characters of a device's id that are shown: enough for a UUID. */
const MAX_ID_CHARS = 36

/** Returns the devices that get pushes; none without a push relay, because nothing is sent then. */
export const toldDevices = async ({ config, db }: Context, did: Did): Promise<readonly PushRegistration[]> =>
  config.notifications.relay === null ? [] : pushDevicesOf(db, did)

export const forgetDevice = (ctx: Context, did: Did, deviceId: string): Promise<boolean> =>
  ctx.db.transaction((tx) => removeRegistration(ctx, tx, { owner: did, deviceId }))

export function pushPart(view: AccountView): Html | null {
  const outcome = outcomeOf(view, 'pushes')
  if (view.pushDevices.length === 0 && outcome === null) return null
  const { shown, more } = partOf(view, 'pushes', view.pushDevices)
  return html`
<section class="card" id="pushes">
  <div class="tight"><h2>${texts.title}</h2><p class="quiet">${texts.lead}</p></div>
  ${outcome}
  ${view.pushDevices.length === 0 ? html`<p class="note">${texts.none}</p>` : html`<ul class="list">${shown.map((device) => deviceRow(view, device))}</ul>`}
  ${more}
</section>`
}

function deviceRow(view: AccountView, { deviceId, topic, registeredAt, pushedAt }: PushRegistration): Html {
  const name = plainName(topic)
  const id = plainName(deviceId, MAX_ID_CHARS)
  return html`
<li>
  <div class="body"><strong>${name}</strong><small>${pushedAt === null ? texts.since({ day: day(registeredAt) }) : texts.sincePushed({ day: day(registeredAt), pushed: day(pushedAt) })}</small><small>${texts.device({ id })}</small></div>
  ${accountForm(view, 'pushes', html`${hidden({ id: deviceId })}<button class="small danger" aria-label="${texts.removeDevice({ id, name })}">${texts.remove}</button>`)}
</li>`
}
