// A plugin for `platform: stdio` that speaks for one bot of a small HTTP chat server:
//   GET  $CHAT_API/updates?after=CURSOR   waits, and returns [{cursor, id, chat, thread, user, text}]
//   POST $CHAT_API/send                   {id, chat, thread, text} -> {message}
// docs/platforms.md explains the lines. It needs Node.js 18 and nothing else.
import { createInterface } from 'node:readline'

const api = process.env.CHAT_API
if (!api) {
  process.stderr.write('CHAT_API is not set\n')
  process.exit(2)
}

const say = (line) => process.stdout.write(JSON.stringify(line) + '\n')
const answers = new Map() // message id -> what waits for its answer
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

// take hands one update to the bridge, again and again until it has it.
async function take(update) {
  for (;;) {
    const answer = await new Promise((resolve) => {
      answers.set(update.id, resolve)
      say({ type: 'message', ...update })
    })
    if (answer.type === 'taken' || !answer.retry) return
    await pause(500)
  }
}

// poll reads updates behind the last one that the bridge has.
async function poll(cursor) {
  for (;;) {
    try {
      const response = await fetch(`${api}/updates?after=${encodeURIComponent(cursor)}`)
      if (!response.ok) throw new Error(`updates: ${response.status}`)
      for (const update of await response.json()) {
        await take(update)
        cursor = update.cursor
      }
    } catch (error) {
      process.stderr.write(`${error.message}\n`)
      await pause(500)
    }
  }
}

// send says one part, and tells the bridge what came of it.
async function send({ id, chat, thread, text }) {
  try {
    const response = await fetch(`${api}/send`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ id, chat, thread, text }),
    })
    if (response.status === 429) {
      say({ type: 'later', id, after_ms: 1000 * Number(response.headers.get('retry-after') ?? 1), error: 'too fast' })
    } else if (!response.ok) {
      say({ type: 'failed', id, error: `send: ${response.status}`, final: response.status === 403 })
    } else {
      say({ type: 'sent', id, message: (await response.json()).message })
    }
  } catch (error) {
    say({ type: 'failed', id, error: error.message })
  }
}

say({ type: 'hello', version: 1, limit: { max: 4096, unit: 'utf16' } })
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line)
  if (message.type === 'welcome') poll(message.cursor ?? '')
  if (message.type === 'send') send(message)
  if (message.type === 'taken' || message.type === 'refused') {
    answers.get(message.id)?.(message)
    answers.delete(message.id)
  }
}
process.exit(0) // the bridge has ended, or has no more use for this process
