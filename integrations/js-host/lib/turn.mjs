import { Refusal } from "./bus.mjs";

/** A running turn, as the agent sees it. */
export class Turn {
  #controller = new AbortController();
  #parts = 0;
  #steers = []; // told and not taken; what the agent never takes becomes the next turn
  #wake = () => {};

  constructor(bus, hosted, id, offer) {
    Object.assign(this, { bus, hosted, id, session: hosted.id, fence: hosted.fence, items: offer.items, names: offer.names });
  }

  /** Aborts when somebody interrupts the turn, the session is lost or the host stops. */
  get signal() {
    return this.#controller.signal;
  }

  abort(reason) {
    this.#controller.abort(new Error(reason));
  }

  /** Shows a piece of the reply before the whole is there. */
  part(text) {
    this.bus.part(this.session, this.id, ++this.#parts, text);
  }

  /** A message for this turn was told. */
  offerSteer(order) {
    this.#steers.push(order);
    this.#wake();
  }

  /**
   * Waits for a message that is put into this turn, makes it the turn's, and returns its
   * items. They are the agent's only once the bus has recorded it.
   */
  async steer() {
    for (;;) {
      const order = await this.#nextSteer();
      try {
        await this.bus.command("turn.accept", { session: this.session, fence: this.fence, offer: order.offer, turn: this.id });
      } catch (err) {
        if (err instanceof Refusal && err.code === "unknown_offer") continue; // withdrawn
        throw err;
      }
      this.items = [...this.items, ...order.items];
      return order.items;
    }
  }

  async #nextSteer() {
    while (this.#steers.length === 0) {
      this.signal.throwIfAborted();
      await new Promise((resolve) => {
        this.#wake = resolve;
        this.signal.addEventListener("abort", resolve, { once: true });
      });
    }
    return this.#steers.shift();
  }

  /** Runs the agent; whatever it does, there is an outcome. */
  async run(agent) {
    try {
      const reply = await agent(this);
      return { outcome: this.signal.aborted ? "aborted" : "completed", reply: String(reply ?? "") };
    } catch (err) {
      const outcome = this.signal.aborted ? "aborted" : "failed";
      return { outcome, reply: "", error: (this.signal.reason ?? err).message };
    }
  }

  /** Reports the end until the bus has taken it. A turn it gave up before is reported late. */
  async report(result) {
    const end = { session: this.session, fence: this.fence, turn: this.id };
    try {
      return await this.bus.command("turn.end", { ...end, ...result });
    } catch (err) {
      if (!(err instanceof Refusal) || !["invalid", "too_large"].includes(err.code)) throw err;
      // A turn must not stay open because of what its result looks like.
      return await this.bus.command("turn.end", { ...end, outcome: "failed", error: `the bus refused the result: ${err.message}` });
    }
  }
}
