import { readFileSync } from 'node:fs';

/** Reads a file made by `bus user add`: four lines of the form `name: value`. */
export function readCredentials(path) {
  const fields = {};
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const m = /^([a-z]+):\s*["']?([^"'\s]+)["']?\s*$/.exec(line);
    if (m) fields[m[1]] = m[2];
  }
  for (const name of ['profile', 'name', 'seed']) {
    if (!fields[name]) throw new Error(`${path}: not a credentials file: it has no ${name}`);
  }
  return fields;
}
