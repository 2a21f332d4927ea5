import { setTimeout as sleep } from "node:timers/promises";

import { connect, headers, nkeyAuthenticator } from "@nats-io/transport-node";

import { ulid } from "./ids.mjs";

/** What the bus answered instead of doing a command. */
export class Refusal extends Error {
  constructor({ code, message, path, details }) {
    super(`${code}: ${message}`);
    Object.assign(this, { code, path, details });
  }
}

/** These pass by themselves; every other refusal is final. */
const passing = new Set(["unavailable", "conflict", "rate_limited"]);

/** A connection of one host instance. */
export class Bus {
  static async open({ url, credentials, log }) {
    const bus = new Bus(credentials, log);
    bus.nc = await connect({
      servers: url,
      name: credentials.name,
      authenticator: nkeyAuthenticator(new TextEncoder().encode(credentials.seed)),
      inboxPrefix: `_INBOX_${credentials.profile}_${credentials.name}`,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 200,
      pingInterval: 5000,
    });
    bus.watching = bus.#watch();
    return bus;
  }

  constructor({ profile, name }, log) {
    Object.assign(this, { profile, name, log, instance: ulid() });
    this.reconnectListeners = new Set();
    this.#renewReconnect();
  }

  #renewReconnect() {
    this.reconnected = new Promise((resolve) => (this.tellReconnected = resolve));
  }

  async #watch() {
    for await (const s of this.nc.status()) {
      if (s.type === "disconnect") this.log("the connection to the bus is lost");
      if (s.type === "error") this.log(`the bus says: ${s.error.message}`);
      if (s.type !== "reconnect") continue;
      this.log("connected to the bus again");
      const tell = this.tellReconnected;
      this.#renewReconnect();
      tell("again");
      for (const listen of this.reconnectListeners) listen();
    }
  }

  onReconnect(listen) {
    this.reconnectListeners.add(listen);
  }

  /** Calls take(subject, message) for each message; resolves once the server listens. */
  async listen(subject, take) {
    this.nc.subscribe(subject, {
      callback: (err, m) => {
        if (err) this.log(`subscription ${subject}: ${err.message}`);
        else take(m.subject, m);
      },
    });
    await this.nc.flush();
  }

  /**
   * Sends a command until it is answered, always with the same id, over reconnects and
   * restarts of the bus. Throws a Refusal, or the signal's reason when that ends first.
   */
  async command(verb, data, { signal } = {}) {
    const h = headers();
    h.set("ce-specversion", "1.0");
    h.set("ce-id", ulid());
    h.set("ce-source", `/profiles/${this.profile}/principals/${this.name}`);
    h.set("ce-type", `keryx.cmd.${verb}.v1`);
    h.set("ce-time", new Date().toISOString());
    h.set("ce-datacontenttype", "application/json");
    const subject = `kx.cmd.${this.profile}.${this.name}.${verb}`;
    const body = JSON.stringify(data);
    for (let wait = 2000, pause = 20; ; pause = Math.min(2 * pause, 1000)) {
      signal?.throwIfAborted();
      const m = await this.#once(subject, body, h, wait);
      if (m === "again") continue;
      if (m === null) {
        wait = Math.min(2 * wait, 15000);
        continue;
      }
      if (m.headers?.get("Keryx-Status") === "ok") return m.json();
      const refusal = m.headers?.get("Keryx-Status") === "error" ? new Refusal(m.json()) : null;
      if (refusal && !passing.has(refusal.code)) throw refusal;
      await sleep(pause / 2 + Math.random() * pause); // or nobody takes commands just now
    }
  }

  /** One try: the answer, null if none came, or "again" if the connection was made anew. */
  async #once(subject, body, h, timeout) {
    const again = this.reconnected;
    const answer = this.nc.request(subject, body, { headers: h, timeout }).catch((err) => {
      if (this.nc.isClosed()) throw err;
      return /no.?responders/i.test(`${err.name} ${err.message}`) ? { headers: undefined } : null;
    });
    answer.catch(() => {}); // it may end after a reconnect was told
    return Promise.race([answer, again]);
  }

  /** A piece of a reply while it is made. It is not kept. */
  part(session, turn, number, text) {
    const h = headers();
    h.set("Keryx-Part", String(number));
    this.nc.publish(`kx.part.${this.profile}.${this.name}.${session}.${turn}`, text, { headers: h });
  }

  /** Resolves, with the error if there was one, when the connection has ended for good. */
  closed() {
    return this.nc.closed();
  }

  async close() {
    await this.nc.drain();
    await this.watching;
  }
}
