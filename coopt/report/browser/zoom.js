// A drawing in a frame that scrolls is zoomed by buttons or Ctrl and the wheel, and moved by dragging.

import { h } from "./dom.js";

const MOST = 8;

/** The buttons that zoom what is in a frame. */
export function zoomButtons(frame) {
  const drawing = frame.firstElementChild;
  let factor = 1;
  const zoom = (by, at = frame.clientWidth / 2) => {
    const before = factor, held = frame.scrollLeft + at;
    factor = by ? Math.min(MOST, Math.max(1, factor * by)) : 1;
    drawing.style.width = `${100 * factor}%`;
    frame.scrollLeft = held * factor / before - at;
  };
  frame.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, event.clientX - frame.getBoundingClientRect().left);
  }, { passive: false });
  frame.addEventListener("pointermove", (event) => { if (event.buttons === 1 && event.pointerType === "mouse") frame.scrollLeft -= event.movementX; });
  const button = (text, name, by) => h("button", { type: "button", "aria-label": name, click: () => zoom(by) }, text);
  return h("p", { class: "zoom" }, button("+", "Zoom in", 1.5), button("\u2212", "Zoom out", 1 / 1.5), button("Whole", "Show the whole drawing", 0));
}

for (const frame of document.querySelectorAll(".zoomed")) frame.before(zoomButtons(frame));
