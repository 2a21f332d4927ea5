import { setTimeout as sleep } from "node:timers/promises";

import { Refusal } from "./bus.mjs";
import { Hosted } from "./hosted.mjs";

/** Events that may mean that a session wants a host. */
const news = new Set([
  "session.registered", "session.detached", "session.reset",
  "continuation.queued", "continuation.requeued", "continuation.released",
].map((t) => `keryx.${t}.v1`));

/** Refusals of a renewal that mean that the session is gone. */
const gone = new Set(["lease_lost", "stale_fence", "unknown_session", "forbidden"]);

/** Drives the sessions that want this principal, with one agent for all of them. */
export class Host {
  constructor({ bus, agent, leaseMs = 15000, maxTurns = 100, listMs = 30000, log }) {
    Object.assign(this, { bus, agent, leaseMs, maxTurns, listMs, log });
    this.sessions = new Map();
    this.work = new Set(); // what is under way
    this.stopping = false;
  }

  async start() {
    const { profile, name, instance } = this.bus;
    await this.bus.listen(`kx.host.${profile}.${name}.${instance}.>`, (subject, m) => this.order(subject, m.json()));
    await this.bus.listen(`kx.live.${profile}.>`, (subject, m) => {
      if (news.has(m.headers?.get("ce-type"))) this.consider(subject.split(".")[3]);
    });
    this.bus.onReconnect(() => this.reconcile());
    this.listing = setInterval(() => this.track(this.list()), this.listMs);
    this.renewing = setInterval(() => this.track(this.renew()), this.leaseMs / 3);
    await this.list();
  }

  /** Keeps a promise until it ends. What fails unexpectedly ends the host. */
  track(promise) {
    const p = promise.catch((err) => {
      if (!this.stopping) throw err;
      this.log(`while stopping: ${err.message}`);
    }).finally(() => this.work.delete(p));
    this.work.add(p);
  }

  full() {
    let n = 0;
    for (const s of this.sessions.values()) if (s.running) n++;
    return n >= this.maxTurns;
  }

  order(subject, o) {
    const s = this.sessions.get(o.session);
    if (!s || this.stopping) return;
    switch (subject.split(".").at(-1)) {
      case "offer": s.offer(o); break;
      case "steer": s.steer(o); break;
      case "interrupt": if (s.running?.id === o.turn) s.running.abort(`interrupted: ${o.reason}`); break;
      case "detached": if (s.fence === o.fence) this.drop(s, `the bus took the session away: ${o.reason}`); break;
    }
  }

  /** Looks through all sessions that want this host. */
  async list() {
    for (let after, more = true; more; ) {
      const page = await this.bus.command("session.list", { host: this.bus.name, open: true, ...(after && { after }) });
      for (const s of page.sessions) if (this.wanted(s)) this.adopt(s.session);
      more = page.more;
      after = page.sessions.at(-1)?.session;
    }
  }

  wanted(s) {
    return s.pending > 0 && !s.host && s.status !== "finalized" && (s.wanted_hosts ?? []).includes(this.bus.name);
  }

  /** Looks at one session of which there was news. */
  consider(session) {
    if (this.stopping || this.sessions.has(session) || session.startsWith("_")) return;
    this.track((async () => {
      try {
        if (this.wanted(await this.bus.command("session.show", { to: session }))) this.adopt(session);
      } catch (err) {
        if (!(err instanceof Refusal)) throw err;
      }
    })());
  }

  adopt(session) {
    if (this.stopping || this.sessions.has(session)) return;
    const s = new Hosted(this, session);
    this.sessions.set(session, s);
    this.track(this.hold(s));
  }

  async hold(s) {
    try {
      await s.attach();
    } catch (err) {
      if (!(err instanceof Refusal)) throw err;
      this.drop(s, err.message);
    }
  }

  /** After a reconnect: what was ours, and what was missed. */
  reconcile() {
    for (const s of this.sessions.values()) this.track(this.hold(s));
    this.track(this.list());
  }

  /** Renews all leases with one command. */
  async renew() {
    const held = [...this.sessions.values()].filter((s) => s.fence !== null);
    if (held.length === 0) return;
    const key = (s) => `${this.bus.profile}.session.${s.id}`;
    let answer;
    try {
      answer = await this.bus.command("lease.renew", {
        instance: this.bus.instance, leases: held.map((s) => ({ key: key(s), fence: s.fence })),
      }, { signal: AbortSignal.timeout(Math.floor(this.leaseMs / 3)) });
    } catch (err) {
      this.log(`renew: ${err.message}`); // the next one is due at once
      return;
    }
    answer.results.forEach((r, i) => {
      if (r.error && gone.has(r.error.code)) this.drop(held[i], r.error.message);
    });
  }

  /** Forgets a session. Its turn's work is ended; what it reports is kept as late. */
  drop(s, why) {
    if (this.sessions.get(s.id) !== s) return;
    this.sessions.delete(s.id);
    if (s.fence !== null) this.log(`session ${s.id}: ${why}`);
    s.lost(why);
  }

  /** Ends the turns, gives the sessions back and closes: 20 s at most. */
  async stop() {
    this.stopping = true;
    clearInterval(this.listing);
    clearInterval(this.renewing);
    for (const s of this.sessions.values()) s.running?.abort("the host is stopping");
    await Promise.race([Promise.allSettled([...this.work]), sleep(15000, undefined, { ref: false })]);
    await Promise.allSettled([...this.sessions.values()].filter((s) => s.fence !== null).map((s) => s.detach()));
    await this.bus.close();
  }
}
