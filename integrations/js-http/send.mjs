// Sends one event in each mode of the CloudEvents HTTP binding with the official SDK:
// three times the same, which is one message, and a batch with two more.
import { CloudEvent, HTTP } from 'cloudevents';
import { Api, options } from './lib/api.mjs';

const { url, 'token-file': tokenFile, to } = options('url', 'token-file', 'to');
const api = new Api(url, tokenFile);
const make = (id, data) => new CloudEvent({ id, type: 'com.example.build', source: '/ci', subject: to, data });

async function post({ headers, body }) {
  const response = await fetch(`${api.url}/v1/events`, { method: 'POST', headers: api.headers(headers), body });
  return { status: response.status, answer: await response.json() };
}

const one = make('1', { build: 'ok', note: 'é <&>' });
const say = (mode, { status, answer }) => console.log(JSON.stringify({ mode, status, answer }));
say('binary', await post(HTTP.binary(one)));
say('structured', await post(HTTP.structured(one)));
say('batch', await post({
  headers: { 'content-type': 'application/cloudevents-batch+json' },
  body: JSON.stringify([one, make('2', 'two'), make('3', 3)]),
}));
