// The HTTP API of a Keryx bus, with what Node.js has alone.
import { readFileSync } from 'node:fs';

/** A refusal: a problem document with a code of the bus's table. */
export class Refusal extends Error {
  constructor(problem) {
    super(`${problem.code}: ${problem.detail}`);
    Object.assign(this, problem);
  }
}

export class Api {
  /** The secret of `bus token add` is read from a file. */
  constructor(url, tokenFile) {
    this.url = url.replace(/\/$/, '');
    this.token = readFileSync(tokenFile, 'utf8').trim();
  }

  headers(more = {}) {
    return { authorization: `Bearer ${this.token}`, ...more };
  }

  /** Sends a request and returns the answer; a refusal is thrown. */
  async request(method, path, body, { signal, headers } = {}) {
    const json = body === undefined ? {} : { 'content-type': 'application/json' };
    const response = await fetch(this.url + path, {
      method, signal, headers: this.headers({ ...json, ...headers }), body: body === undefined ? undefined : JSON.stringify(body),
    });
    const answer = await response.json();
    if (!response.ok) throw new Refusal(answer);
    return answer;
  }

  /** Like request, again until it is answered: what may pass is tried after a pause. */
  async insist(method, path, body, options = {}) {
    for (let pause = 100; ; pause = Math.min(2 * pause, 2000)) {
      try {
        return await this.request(method, path, body, options);
      } catch (error) {
        const final = error instanceof Refusal && !error.retryable;
        if (final || options.signal?.aborted) throw error;
        await sleep(pause);
      }
    }
  }

  /**
   * Yields the events of a stream as {id, event, data}, and goes on behind the last one
   * when the connection breaks, until the signal aborts or the stream is refused.
   */
  async *stream(path, { lastEventId = '', signal } = {}) {
    for (let last = lastEventId; !signal?.aborted; await sleep(200)) {
      const headers = this.headers({ accept: 'text/event-stream', ...(last && { 'last-event-id': last }) });
      let response;
      try {
        response = await fetch(this.url + path, { headers, signal });
      } catch {
        continue; // nobody answers: it may come back
      }
      if (!response.ok) {
        const problem = await response.json();
        if (problem.retryable) continue;
        throw new Refusal(problem);
      }
      try {
        for await (const event of parse(response.body)) {
          if (event.event === 'end') break;
          if (event.id) last = event.id;
          yield event;
        }
      } catch (error) {
        if (!(error instanceof TypeError || error.name === 'AbortError' || error.code)) throw error; // not the connection's
      }
    }
  }
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Parses server-sent events. */
async function* parse(body) {
  const decoder = new TextDecoder();
  let rest = '';
  let event = { data: [] };
  for await (const bytes of body) {
    rest += decoder.decode(bytes, { stream: true });
    const lines = rest.split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (line === '') {
        if (event.data.length > 0) yield { id: event.id, event: event.event, data: event.data.join('\n') };
        event = { data: [] };
        continue;
      }
      const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
      if (field === 'data') event.data.push(value);
      else if (field === 'id' || field === 'event') event[field] = value;
    }
  }
}

/** The options of a command line as --name value. */
export function options(...needed) {
  const out = {};
  for (let i = 2; i < process.argv.length; i += 2) out[process.argv[i].replace(/^--/, '')] = process.argv[i + 1];
  const missing = needed.filter((name) => out[name] === undefined);
  if (missing.length > 0) {
    console.error(`usage: needed are ${needed.map((n) => '--' + n + ' VALUE').join(' ')}`);
    process.exit(2);
  }
  return out;
}
