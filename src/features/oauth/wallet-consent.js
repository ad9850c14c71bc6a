// Waits on a page until a wallet has decided, and then continues. Without it, the person presses the button.
{
  const FIRST_WAIT_SECS = 3
  const MORE_WAIT_SECS = 2
  const MAX_WAIT_SECS = 15

  const { requestId } = document.getElementById('wallet-path').dataset
  const line = document.getElementById('wallet-status')
  const form = document.getElementById('wallet-complete')

  const ends = {
    approved: 'Approved in your wallet. This page continues by itself.',
    denied: 'Denied in your wallet. Nobody gets access. You can close this page.',
    expired: 'The time for this request is over. Please start again.',
    completed: 'This request is completed. You can close this page.',
  }

  let waitSecs = FIRST_WAIT_SECS
  const wait = () => setTimeout(poll, waitSecs * 1000)

  async function poll() {
    const status = await statusNow()
    if (!(status in ends)) return wait()
    line.textContent = ends[status]
    if (status === 'approved') form.requestSubmit()
    else form.remove()
  }

  async function statusNow() {
    try {
      const response = await fetch(`/oauth/authorize/status?request_id=${encodeURIComponent(requestId)}`, { credentials: 'omit' })
      if (response.status === 429) waitSecs = Math.min(waitSecs + MORE_WAIT_SECS, MAX_WAIT_SECS)
      return response.ok ? (await response.json()).status : 'pending'
    } catch {
      return 'pending' // the network is away for a moment
    }
  }

  wait()
}
