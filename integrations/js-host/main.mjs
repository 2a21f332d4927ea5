#!/usr/bin/env node
import { parseArgs } from "node:util";

import { agent } from "./agent.mjs";
import { Bus } from "./lib/bus.mjs";
import { readCredentials } from "./lib/credentials.mjs";
import { Host } from "./lib/host.mjs";

const usage = "usage: node main.mjs --url nats://HOST:PORT --creds FILE [--lease-ms N] [--max-turns N]";
const log = (text) => process.stderr.write(`js-host: ${text}\n`);

function options() {
  const { values } = parseArgs({ options: {
    url: { type: "string" }, creds: { type: "string" },
    "lease-ms": { type: "string", default: "15000" }, "max-turns": { type: "string", default: "100" },
  } });
  const leaseMs = Number(values["lease-ms"]), maxTurns = Number(values["max-turns"]);
  if (!values.url || !values.creds || !(leaseMs >= 2000) || !(maxTurns >= 1)) throw new Error(usage);
  return { url: values.url, creds: values.creds, leaseMs, maxTurns };
}

async function main() {
  const { url, creds, leaseMs, maxTurns } = options();
  const bus = await Bus.open({ url, credentials: readCredentials(creds), log });
  const host = new Host({ bus, agent, leaseMs, maxTurns, log });
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => host.stop());
  await host.start();
  log(`serving as ${bus.name} of profile ${bus.profile}, instance ${bus.instance}`);
  const err = await bus.closed();
  if (err) throw err;
}

main().catch((err) => {
  log(err.message);
  process.exit(1);
});
