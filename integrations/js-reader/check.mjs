// Checks an AsyncAPI document with the official parser, which also follows references to the
// files beside it.
import { Parser, fromFile } from '@asyncapi/parser';

const errors = (diagnostics) => diagnostics.filter((d) => d.severity <= 1); // errors and warnings

const { document, diagnostics } = await fromFile(new Parser(), process.argv[2]).parse();
for (const d of errors(diagnostics)) console.error(`${d.path.join('/')}: ${d.code}: ${d.message}`);
if (!document || errors(diagnostics).length > 0) process.exit(1);

const messages = document.allMessages().all();
const empty = messages.filter((m) => !m.payload()?.type());
if (empty.length > 0) {
  console.error('messages without a payload:', ...empty.map((m) => m.id()));
  process.exit(1);
}
console.log(JSON.stringify({
  version: document.version(),
  messages: messages.map((m) => m.name()).sort(),
  receives: document.operations().all().filter((o) => o.isReceive()).map((o) => o.id()).sort(),
}));
