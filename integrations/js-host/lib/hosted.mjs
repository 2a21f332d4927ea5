import { Refusal } from "./bus.mjs";
import { ulid } from "./ids.mjs";
import { Turn } from "./turn.mjs";

/** How many answered offers are remembered: one is open at a time. */
const remembered = 16;

/** A session that this host drives, or is about to. */
export class Hosted {
  constructor(host, id) {
    Object.assign(this, { host, bus: host.bus, id, fence: null, running: null });
    this.early = []; // offers told before the attach was answered
    this.known = new Map(); // offer id to turn id, or null if it was declined
  }

  /** Attaches, or asks again after a reconnect whether the session is still ours. */
  async attach() {
    const asked = performance.now();
    const a = await this.bus.command("session.attach", {
      session: this.id,
      instance: this.bus.instance,
      lease_ttl_ms: this.host.leaseMs,
      capabilities: ["idempotent_offer", "interrupt", "merge", "steer"],
      known_offers: [...this.known.keys()],
    });
    if (this.fence !== null && this.fence !== a.fence) this.lost("the session was taken away meanwhile");
    Object.assign(this, { fence: a.fence, ttl: a.lease_ttl_ms, renewed: asked });
    const early = this.early;
    this.early = [];
    for (const o of early) this.offer(o);
  }

  /** Takes an offer once. A repeat is left to the answer that is under way. */
  offer(o) {
    if (this.fence === null) {
      this.early.push(o);
      return;
    }
    if (o.fence !== this.fence || this.known.has(o.offer)) return;
    if (this.running || this.host.full()) {
      this.remember(o.offer, null);
      this.host.track(this.decline(o));
      return;
    }
    const turn = new Turn(this.bus, this, ulid(), o);
    this.remember(o.offer, turn.id);
    this.running = turn;
    this.host.track(this.take(turn, o));
  }

  remember(offer, turn) {
    this.known.set(offer, turn);
    if (this.known.size > remembered) this.known.delete(this.known.keys().next().value);
  }

  async decline(o) {
    try {
      await this.bus.command("turn.decline", {
        session: this.id, fence: o.fence, offer: o.offer, reason: this.running ? "the turn before has not ended" : "at capacity",
      });
    } catch (err) {
      this.refused(err, "decline");
    }
  }

  /** From accept to end. The turn begins only when the bus has answered the accept. */
  async take(turn, o) {
    try {
      await this.bus.command("turn.accept", { session: this.id, fence: o.fence, offer: o.offer, turn: turn.id });
    } catch (err) {
      this.free(turn);
      this.refused(err, "accept");
      return;
    }
    const result = await turn.run(this.host.agent);
    this.free(turn); // before the report: the next offer may come before its answer
    try {
      const ended = await turn.report(result);
      if (ended.late) this.host.log(`turn ${turn.id} was reported late`);
    } catch (err) {
      this.refused(err, "end");
    }
  }

  free(turn) {
    if (this.running === turn) this.running = null;
  }

  steer(o) {
    if (this.running?.id !== o.turn || this.known.has(o.offer)) return;
    this.remember(o.offer, o.turn);
    this.running.offerSteer(o);
  }

  /** What a refusal means for the session; an offer that was withdrawn means nothing. */
  refused(err, what) {
    if (!(err instanceof Refusal)) throw err;
    if (err.code === "stale_fence") this.host.drop(this, "another instance drives the session");
    if (!["unknown_offer", "already_ended", "stale_fence"].includes(err.code)) this.host.log(`${what} in ${this.id}: ${err.message}`);
  }

  lost(reason) {
    this.running?.abort(reason);
    this.running = null;
    this.known.clear();
  }

  async detach() {
    await this.bus.command("session.detach", { session: this.id, fence: this.fence }, { signal: AbortSignal.timeout(5000) });
  }
}
