// Waits on a page until a wallet has decided, and then continues. Without it, the person presses the button.
{
  const WAIT_SECS = 3
  const MORE_WAIT_SECS = 2
  const MAX_WAIT_SECS = 15

  const line = document.getElementById('wallet-status')
  const form = document.getElementById('wallet-complete')
  const button = form.querySelector('button')
  /** Null on a page that shows nothing else. */
  const fold = line.closest('details')

  /** What the line says once the wallet has decided, in the language of the page. */
  const { approved, denied, expired, completed } = line.dataset
  const ends = { approved, denied, expired, completed }

  let waitSecs = WAIT_SECS
  let askedAt = Date.now()
  let timer

  /** A hidden tab or a folded part asks less often. It still asks: a push may have told the wallet. */
  const isWatched = () => !document.hidden && fold?.open !== false

  function wait() {
    clearTimeout(timer)
    const dueAt = askedAt + (isWatched() ? waitSecs : MAX_WAIT_SECS) * 1000
    timer = setTimeout(poll, Math.max(0, dueAt - Date.now()))
  }

  async function poll() {
    watch(false)
    askedAt = Date.now()
    const status = await statusNow()
    if (status in ends) return end(status)
    watch(true)
    wait()
  }

  function watch(isOn) {
    const change = isOn ? 'addEventListener' : 'removeEventListener'
    document[change]('visibilitychange', wait)
    fold?.[change]('toggle', wait)
  }

  async function statusNow() {
    try {
      const query = new URLSearchParams({ request_id: line.dataset.requestId })
      const response = await fetch(`/oauth/authorize/status?${query}`, { credentials: 'omit' })
      if (response.status === 429) waitSecs = Math.min(waitSecs + MORE_WAIT_SECS, MAX_WAIT_SECS)
      return response.ok ? (await response.json()).status : 'pending'
    } catch {
      button.hidden = false
      return 'pending' // the network is away for a moment
    }
  }

  function end(status) {
    if (fold) fold.open = true
    line.textContent = ends[status]
    if (status === 'approved') form.requestSubmit()
    else form.remove()
  }

  button.hidden = line.dataset.status !== 'approved'
  watch(true)
  wait()
}
