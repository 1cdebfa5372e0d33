// Elements by their tag, attributes and children; texts are never read as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element; attributes that are null or false are left out, functions listen to events. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** Put other children into an element, and keep the focus where it was, by id. */
export function show(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  const place = focused && "selectionStart" in focused && focused.type === "text" ? focused.selectionStart : null;
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
  const same = focused?.id ? byId(focused.id) : null;
  if (same && same !== document.activeElement) {
    same.focus({ preventScroll: true });
    if (place !== null) same.setSelectionRange(place, place);
  }
}

/** A number and its unit on one line. */
export const tied = (text) =>
  text.replace(/(\d) (?=(?:[BMk]|[MkG]?W|m?s|x|[GMTP]B|GiB|Gbit\/s|GB\/s|GPUs?|NICs?)\b)/g, "$1\u00a0");

/** A function that runs once the calls have stopped for a while. */
export function settled(ms, action) {
  let timer = 0;
  const call = (...given) => {
    clearTimeout(timer);
    call.pending = true;
    timer = setTimeout(() => { call.pending = false; action(...given); }, ms);
  };
  call.pending = false;
  call.stop = () => { clearTimeout(timer); call.pending = false; };
  return call;
}
