#!/usr/bin/env node
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

import { Bus } from "./lib/bus.mjs";
import { readCredentials } from "./lib/credentials.mjs";
import { Handler } from "./lib/handler.mjs";

const usage = "usage: node command.mjs --url nats://HOST:PORT --creds FILE [--lease-ms N]";
const log = (text) => process.stderr.write(`js-command: ${text}\n`);

/** What this process carries out. Replace it by your own. */
const commands = {
  rot13: {
    help: "turn letters by thirteen",
    surfaces: ["terminal", "pipe", "http"],
    run: (rawArgs) => rawArgs.replace(/[a-z]/gi, (c) => {
      const a = c <= "Z" ? 65 : 97;
      return String.fromCharCode((c.charCodeAt(0) - a + 13) % 26 + a);
    }),
  },
  where: {
    help: "say where it was given",
    fields: ["gateway_session_key", "surface", "task_id"],
    run: (rawArgs, fields) => JSON.stringify(fields),
  },
  nap: {
    help: "take some seconds",
    timeout_ms: 60000,
    run: async (rawArgs, fields, signal) => {
      log(`napping ${rawArgs}`);
      await sleep(Number(rawArgs) * 1000, undefined, { signal });
      return "awake";
    },
  },
};

async function main() {
  const { values } = parseArgs({ options: {
    url: { type: "string" }, creds: { type: "string" }, "lease-ms": { type: "string", default: "15000" },
  } });
  const leaseMs = Number(values["lease-ms"]);
  if (!values.url || !values.creds || !(leaseMs >= 2000)) throw new Error(usage);
  const bus = await Bus.open({ url: values.url, credentials: readCredentials(values.creds), log });
  const handler = new Handler({ bus, commands, leaseMs, log });
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => handler.stop());
  await handler.start();
  log(`carrying out /${Object.keys(commands).join(", /")} as ${bus.name}`);
  await Promise.race([handler.keeping, bus.closed()]);
  const err = await bus.closed();
  if (err) throw err;
}

main().catch((err) => {
  log(err.message);
  process.exit(1);
});
