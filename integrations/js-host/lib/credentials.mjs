import { readFileSync, statSync } from "node:fs";

/** Reads a file made by `bus user add`: four lines of the form `name: value`. */
export function readCredentials(path) {
  if (process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0) {
    throw new Error(`${path}: others than its owner may read it; chmod 600 it`);
  }
  const fields = {};
  for (const line of readFileSync(path, "utf8").split("\n")) {
    const m = /^([a-z]+):\s*(\S+)\s*$/.exec(line);
    if (m) fields[m[1]] = m[2].replace(/^(["'])(.*)\1$/, "$2");
  }
  for (const name of ["profile", "name", "role", "seed"]) {
    if (!fields[name]) throw new Error(`${path}: not a credentials file: it has no ${name}`);
  }
  if (fields.role !== "host") throw new Error(`${path}: ${fields.name} is a ${fields.role}, not a host`);
  return fields;
}
