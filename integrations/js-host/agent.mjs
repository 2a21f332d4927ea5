import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** Says on standard output, at once, what the agent does: it is the work of this agent. */
function does(what, turn) {
  writeSync(1, JSON.stringify({ does: what, turn: turn.id, items: turn.items.map((i) => i.receipt) }) + "\n");
}

/**
 * A small agent. The first word of a message says what to do: `wait MS` waits, `listen`
 * waits for something to be put into the turn, `fail` fails; the rest is said back.
 */
export async function agent(turn) {
  does("begin", turn);
  try {
    const replies = [];
    for (const item of turn.items) {
      const reply = await answer(turn, item.body.text ?? "");
      turn.part(reply + "\n");
      replies.push(reply);
    }
    return replies.join("\n");
  } finally {
    does("end", turn);
  }
}

async function answer(turn, text) {
  const [word, argument] = text.split(" ");
  switch (word) {
    case "wait":
      await sleep(Number(argument), undefined, { signal: turn.signal });
      return `waited ${argument} ms`;
    case "listen":
      return `heard ${(await turn.steer()).map((i) => i.body.text).join(" ")}`;
    case "fail":
      throw new Error("I was told to fail");
    default:
      return `you said ${text}`;
  }
}
