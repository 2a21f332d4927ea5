// Checks an OpenAPI document against the schema of OpenAPI, and that the files it refers to
// are there.
import { dirname, join } from 'node:path';
import { existsSync, readFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';
import { parse } from 'yaml';

const file = process.argv[2];
const missing = new Set();

/** Takes out references to other files, which the validator does not follow. */
function local(value) {
  if (Array.isArray(value)) return value.map(local);
  if (value === null || typeof value !== 'object') return value;
  if (typeof value.$ref === 'string' && !value.$ref.startsWith('#')) {
    const [name, pointer = ''] = value.$ref.split('#');
    const path = join(dirname(file), name);
    let at = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined;
    for (const part of pointer.split('/').slice(1)) at = at?.[part];
    if (at === undefined) missing.add(value.$ref);
    return {};
  }
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, local(v)]));
}

const validator = new Validator();
const result = await validator.validate(local(parse(readFileSync(file, 'utf8'))));
if (!result.valid || missing.size > 0) {
  console.error(JSON.stringify(result.errors ?? [], null, 1), ...missing);
  process.exit(1);
}
console.log(`OpenAPI ${validator.version}`);
