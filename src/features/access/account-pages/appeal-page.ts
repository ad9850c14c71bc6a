/** The page that the mail about a moderation decision links to: it shows the decision, and takes the appeal. */
import { charge } from '../../../http/limiting.ts'
import { html, type Html, type Wording } from '../../../http/html.ts'
import { dayPhrase } from '../../../http/texts.ts'
import { appeal, decisionActs, decisionOfCode, decisionTexts, ownDecisionView } from '../../operations/cases/cases.ts'
import { faultAt, faultOf, hidden, type Fault, type PageCall } from '../page-parts/page-parts.ts'
import { appealTexts as texts } from './appeal-texts.ts'
import { formPage, formRoutes } from './form-page.ts'

const ACTION = '/account/appeal'
const MAX_CHARS = 4000

type Decision = ReturnType<typeof ownDecisionView>

/** The day of a time in RFC 3339, in UTC. */
const dayOf = (time: string): Html => html`<time datetime="${time}">${dayPhrase(Date.parse(time))}</time>`

const row = (name: Wording, value: Html | Wording | number): Html => html`<div><dt>${name}</dt><dd>${value}</dd></div>`

/** Text that a person wrote, with its line breaks. */
const lines = (text: string): Html => html`${text.split('\n').map((line) => html`${line}<br>`)}`

function facts({ act, reason, appeal: given, ...decision }: Decision): Html {
  const told = decisionActs[act]?.told
  return html`
<dl class="facts">
  ${row(texts.caseNumber, decision.case)}
  ${row(texts.concerns, html`<code>${decision.subject}</code>`)}
  ${row(texts.decidedOn, dayOf(decision.decidedAt))}
  ${told && row(texts.decision, told)}
  ${row(texts.reason, lines(reason))}
  ${given && row(texts.yourAnswer, lines(given.text))}
  ${given?.outcome && html`${row(texts.outcome, decisionTexts[given.outcome])}${row(texts.theirAnswer, lines(given.answer ?? ''))}`}
</dl>`
}

const answerField = (text: string): Html => html`
<div class="field">
  <label for="text">${texts.whyWrong}</label>
  <textarea id="text" name="text" rows="6" maxlength="${MAX_CHARS}" required>${text}</textarea>
</div>`

function whatNow({ mayAppeal, appeal: given, appealUntil }: Decision) {
  if (mayAppeal)
    return appealUntil === null ? texts.lead : texts.answerUntil({ day: dayPhrase(Date.parse(appealUntil)) })
  return given === null ? texts.tooLate : given.outcome === null ? texts.waits : texts.isFinal
}

async function show(call: PageCall, given: URLSearchParams, fault: Fault | null): Promise<Response> {
  const code = given.get('code') ?? ''
  let found: Decision | null = null
  const missing = await faultOf(async () => {
    if (fault === null) await charge(call, 'appeal')
    found = ownDecisionView(call.ctx, await decisionOfCode(call.ctx, call.ctx.db, code))
  })
  const decision = found as Decision | null
  const unknown = missing?.status === 404 ? faultAt('code', texts.unknownCode, 404) : missing
  return formPage(call, {
    title: texts.title,
    lead: decision === null ? texts.lead : whatNow(decision),
    action: ACTION,
    fault: fault ?? unknown,
    fields: html`${hidden({ code })}${decision && facts(decision)}${decision?.mayAppeal && answerField(given.get('text') ?? '')}`,
    submit: decision?.mayAppeal ? texts.send : null,
    links: html`<a href="/account">${texts.toAccount}</a>`,
  })
}

async function send(call: PageCall, form: URLSearchParams): Promise<Response> {
  const fault = await faultOf(async () => {
    await charge(call, 'appeal')
    await appeal(call, form.get('code') ?? '', form.get('text') ?? '')
  })
  const shown = fault?.status === 400 ? faultAt('text', texts.emptyAnswer) : fault
  // Show the stored appeal instead of the text of the form.
  if (fault === null) form.delete('text')
  return show(call, form, fault?.status === 409 ? faultAt(null, texts.closed, 409) : shown)
}

export const appealRoutes = formRoutes(ACTION, { show, send })
