// Requests to the server: one document for another, and searches whose events stream back until they are aborted; what is said meanwhile.

import { byId, h, show, tied } from "./dom.js";

export class Refused extends Error {}

/** The connection to the server is lost, or the server ended it. */
export class Lost extends Error {}

async function ask(path, given, signal) {
  const request = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(given), signal };
  let response;
  try {
    response = await fetch(path, request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Lost("The connection to coopt is lost; any answer shown is the last one received.");
  }
  if (!response.ok) throw new Refused(await sentenceOf(response));
  return response;
}

async function sentenceOf(response) {
  const text = await response.text();
  try {
    const told = JSON.parse(text);
    return told.sentence ?? told.complaints.map((one) => one.sentence).join(" ");
  } catch {
    return text;
  }
}

/** The document that answers another. */
export async function answerTo(path, given, signal) {
  return (await ask(path, given, signal)).text();
}

/** Hear every event of a search, by its name; resolves once it has ended, rejects where it did not end by itself. */
export async function search(path, given, hear, signal) {
  const response = await ask(path, given, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", ended = false;
  for (;;) {
    let piece;
    try {
      piece = await reader.read();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      break;
    }
    if (piece.done) break;
    const events = (rest + piece.value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(event);
      if (name === "end") ended = true;
      else hear[name]?.(JSON.parse(data));
    }
  }
  if (!ended) throw new Lost("The connection to coopt broke off; any answer shown is the last one received.");
}

const told = new Map();

/** Say what is being done, each thing on a line; without a text it is done. */
export function tell(name, text) {
  if (text) told.set(name, text);
  else told.delete(name);
  show(byId("progress"), [...told].map(([of, line]) => h("span", { class: of === "question" ? "" : "busy" }, tied(line))));
}

/** What is heard of a search until it finds something. */
export const waits = (name, doing) => ({
  begun: ({ waits }) => waits && tell(name, `${doing}: waiting for another search on this server to end.`),
  started: () => tell(name, `${doing}.`),
  progress: (step) => tell(name, `${doing}: ${step.line}`),
});
