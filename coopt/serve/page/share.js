// A question in its tab, as a link or a file, and what is saved.

import { byId } from "./dom.js";

const KEPT = "coopt-question", SERVED = "coopt-served";

/** The tab keeps the question over a reload. */
export const keepInTab = (text) => sessionStorage.setItem(KEPT, text);

/** The text that the tab keeps; the one that is served where there is none, or the server was started with another since. */
export function textOfTab(served) {
  const same = sessionStorage.getItem(SERVED) === served;
  sessionStorage.setItem(SERVED, served);
  return (same && sessionStorage.getItem(KEPT)) || served;
}

/** A text as a part of an address: deflated, in letters that need no escape. */
export async function packed(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** The text that was packed; null where the part of an address holds none. */
export async function unpacked(part) {
  try {
    const bytes = Uint8Array.from(atob(part.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return await new Response(stream).text();
  } catch {
    return null;
  }
}

/** The text of the address that the page was opened at, which then goes back to being plain. */
export async function textOfAddress() {
  const part = /^#q=(.+)$/.exec(location.hash)?.[1];
  if (!part) return null;
  history.replaceState(null, "", location.pathname);
  const text = await unpacked(part);
  if (text === null) alert("This link cannot be read; the question shown is not the one that was shared.");
  return text;
}

/** Hear of a link that is opened where the page stands already, which loads nothing anew. */
export function onLink(take) {
  addEventListener("hashchange", async () => {
    const text = await textOfAddress();
    if (text !== null) take(text);
  });
}

export async function showLink(text) {
  byId("link-text").value = `${location.origin}/#q=${await packed(text)}`;
  byId("link").showModal();
  byId("link-text").select();
}

byId("link-close").addEventListener("click", () => byId("link").close());
byId("link-copy").addEventListener("click", async (event) => {
  byId("link-text").select();
  if (navigator.clipboard) await navigator.clipboard.writeText(byId("link-text").value);
  else document.execCommand("copy");
  event.target.textContent = "Copied";
  setTimeout(() => { event.target.textContent = "Copy"; }, 1500);
});

export function save(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
