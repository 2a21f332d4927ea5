// Prints the record of a session as it goes: a line of sequence, ordinal and type each.
import { Api, options } from './lib/api.mjs';

const { url, 'token-file': tokenFile, session } = options('url', 'token-file', 'session');
for await (const { id, event, data } of new Api(url, tokenFile).stream(`/v1/sessions/${encodeURIComponent(session)}/events`)) {
  const body = JSON.parse(data);
  console.log(event ? `${id} ${event} ${data}` : `${id} ${body.ordinal} ${body.type}`);
}
