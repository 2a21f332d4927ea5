// Hosts sessions over HTTP alone: attaches to those that want it, and answers each message
// with what it says, in capitals.
import { randomBytes } from 'node:crypto';
import { Api, Refusal, options } from './lib/api.mjs';

const { url, 'token-file': tokenFile, 'lease-ms': leaseMs = '15000' } = options('url', 'token-file');
const api = new Api(url, tokenFile);
const sessions = new Map(); // by id: {fence, known, turn}
const stop = new AbortController();

/** A ULID: 48 bits of time and 80 of chance, in the letters of Crockford. */
function ulid() {
  const letters = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
  let n = (BigInt(Date.now()) << 80n) | BigInt('0x' + randomBytes(10).toString('hex'));
  let out = '';
  for (let i = 0; i < 26; i++, n >>= 5n) out = letters[Number(n & 31n)] + out;
  return out;
}

const { instance, host } = await api.insist('POST', '/v1/hosts', {});
console.error(`serving as ${host}, instance ${instance}`);

async function attach(id) {
  const known = sessions.get(id)?.known ?? [];
  const answer = await api.insist('POST', `/v1/sessions/${id}/attach`, {
    instance, lease_ttl_ms: Number(leaseMs), capabilities: ['idempotent_offer', 'interrupt'], ...(known.length > 0 && { known_offers: known.slice(-16) }),
  });
  sessions.set(id, { ...sessions.get(id), fence: answer.fence, known });
}

async function offer(o) {
  const s = sessions.get(o.session);
  if (!s || s.fence !== o.fence || s.known.includes(o.offer)) return; // another's by now, or told twice
  s.known.push(o.offer);
  const turn = ulid();
  s.turn = turn;
  await api.insist('POST', `/v1/sessions/${o.session}/offers/${o.offer}/accept`, { fence: o.fence, turn });
  const reply = o.items.map((i) => i.body.text.toUpperCase()).join('\n');
  console.log(JSON.stringify({ turn, items: o.items.map((i) => i.receipt) }));
  await api.insist('POST', `/v1/sessions/${o.session}/turns/${turn}/end`, { fence: o.fence, outcome: 'completed', reply });
}

const does = {
  wanted: ({ session }) => attach(session),
  offer,
  interrupt: () => {}, // a turn of this agent is over before one could come
  detached: ({ session }) => sessions.delete(session),
};

process.on('SIGTERM', async () => {
  stop.abort();
  for (const [id, { fence }] of sessions) await api.request('POST', `/v1/sessions/${id}/detach`, { fence }).catch(() => {});
  process.exit(0);
});

let last = '';
while (!stop.signal.aborted) {
  try {
    for await (const { id, event, data } of api.stream(`/v1/hosts/${instance}/orders`, { lastEventId: last, signal: stop.signal })) {
      if (id) last = id;
      try {
        await does[event]?.(JSON.parse(data));
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        console.error(`${event}: ${error.message}`); // such as another host that was first
      }
    }
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'unknown_lease') throw error;
    // The edge began anew: begin again as the same instance, and take up what it drives.
    await api.insist('POST', '/v1/hosts', { instance });
    for (const id of sessions.keys()) {
      await attach(id).catch((e) => { if (!(e instanceof Refusal)) throw e; sessions.delete(id); });
    }
  }
}
