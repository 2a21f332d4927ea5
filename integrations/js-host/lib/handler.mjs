import { setTimeout as sleep } from "node:timers/promises";

import { Refusal } from "./bus.mjs";

/** Refusals after which registering again cannot help. */
const final = new Set(["forbidden", "name_taken", "invalid", "lease_revoked"]);

/**
 * Carries out slash commands: holds the lease of kind handler that stands for this process,
 * declares the commands under it, and answers each invocation once.
 */
export class Handler {
  /** commands: { name: { help, surfaces, fields, roles, timeout_ms, run(rawArgs, fields, signal) } } */
  constructor({ bus, commands, leaseMs = 15000, log }) {
    Object.assign(this, { bus, commands, leaseMs, log });
    this.key = `${bus.profile}.handler.${bus.name}`;
    this.stopping = new AbortController();
    this.work = new Set(); // what is under way
  }

  async start() {
    const { profile, name, instance } = this.bus;
    await this.bus.listen(`kx.handler.${profile}.${name}.${instance}.>`, (subject, m) => {
      if (subject.endsWith(".invoke") && !this.stopping.signal.aborted) this.track(this.invoke(m.json()));
    });
    await this.register();
    this.keeping = this.keep();
  }

  track(promise) {
    const p = promise.catch((err) => this.log(err.message)).finally(() => this.work.delete(p));
    this.work.add(p);
  }

  /** Acquires the lease, waiting while another process of this principal has it, and declares. */
  async register() {
    const { signal } = this.stopping;
    for (;;) {
      try {
        const { fence } = await this.bus.command("lease.acquire", { key: this.key, instance: this.bus.instance, ttl_ms: this.leaseMs }, { signal });
        const commands = Object.entries(this.commands).map(([name, { run, ...spec }]) => ({ name, ...spec }));
        await this.bus.command("handler.register", { instance: this.bus.instance, lease_fence: fence, commands }, { signal });
        this.fence = fence;
        return;
      } catch (err) {
        if (!(err instanceof Refusal) || final.has(err.code)) throw err;
        this.log(`not registered yet: ${err.message}`);
      }
      await sleep(this.leaseMs / 3, undefined, { signal });
    }
  }

  /** Renews the lease, and registers again when it is lost. Ends with the handler. */
  async keep() {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      try {
        await sleep(this.leaseMs / 3, undefined, { signal });
        const { results } = await this.bus.command("lease.renew", {
          instance: this.bus.instance, leases: [{ key: this.key, fence: this.fence }],
        }, { signal });
        if (results[0].error) await this.register();
      } catch (err) {
        if (!signal.aborted) throw err;
      }
    }
  }

  /** Carries out one slash command. It comes once, and is answered whatever becomes of it. */
  async invoke({ raw_args, fields, name, invocation, deadline_ms }) {
    const signal = AbortSignal.any([this.stopping.signal, AbortSignal.timeout(deadline_ms)]);
    const answer = { invocation, instance: this.bus.instance };
    try {
      answer.reply = String((await this.commands[name].run(raw_args, fields, signal)) ?? "");
    } catch (err) {
      answer.error = { code: "handler_failed", message: err.message };
    }
    await this.bus.command("command.answer", answer, { signal: AbortSignal.timeout(30000) });
  }

  /** Ends what is under way, and the registration with it. */
  async stop() {
    this.stopping.abort(new Error("the handler stops"));
    await this.keeping;
    await Promise.all(this.work);
    if (this.fence) {
      await this.bus.command("lease.release", { key: this.key, instance: this.bus.instance, fence: this.fence }, { signal: AbortSignal.timeout(5000) });
    }
    await this.bus.close();
  }
}
