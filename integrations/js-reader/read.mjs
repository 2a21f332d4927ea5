// Prints the events of a profile as they happen, one JSON object a line: `event` as the
// CloudEvents SDK has it, and `bytes`, its data as it came, in base64.
//
//   node read.mjs --url nats://127.0.0.1:4222 --creds observer.creds
import { parseArgs } from 'node:util';
import { HTTP } from 'cloudevents';
import { connect, nkeyAuthenticator } from '@nats-io/transport-node';
import { readCredentials } from './credentials.mjs';

const { values: flags } = parseArgs({ options: { url: { type: 'string' }, creds: { type: 'string' } } });
if (!flags.url || !flags.creds) {
  console.error('read: --url and --creds are needed');
  process.exit(2);
}
const { profile, name, seed } = readCredentials(flags.creds);
const nc = await connect({
  servers: flags.url,
  name,
  authenticator: nkeyAuthenticator(new TextEncoder().encode(seed)),
  inboxPrefix: `_INBOX_${profile}_${name}`,
});

/**
 * The SDK knows the binary mode of HTTP. That of NATS differs in two ways: the content type
 * is an attribute like the others, and the values are percent-encoded.
 */
function toEvent(message) {
  const headers = {};
  for (const key of message.headers.keys()) {
    if (!key.toLowerCase().startsWith('ce-')) continue;
    headers[key.toLowerCase()] = decodeURIComponent(message.headers.get(key));
  }
  headers['content-type'] = headers['ce-datacontenttype'];
  delete headers['ce-datacontenttype'];
  const event = HTTP.toEvent({ headers, body: message.string() });
  event.validate();
  return event;
}

const live = nc.subscribe(`kx.live.${profile}.>`);
await nc.flush();
console.error(`reading as ${name}`);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => nc.drain());
for await (const message of live) {
  const bytes = Buffer.from(message.data).toString('base64');
  process.stdout.write(`${JSON.stringify({ event: toEvent(message), bytes })}\n`);
}
