// Cost against time: the steps of the front with the band of its margin, its points, and the bound, which one may drag.

import { h, s, tied } from "./dom.js";

const HEIGHT = 300, ROOM = { left: 64, right: 18, top: 22, bottom: 44 }, STEP = 0.01;

/** The chart of a front in `place`, with the point that is looked at in words in `said`. Where the bound can be moved,
 * `move(pace, dragging)` hears where it goes, as a multiple of where it was for this front. */
export class Chart {
  constructor(place, said, front, move = null) {
    Object.assign(this, { root: place, said, front, move, pace: 1, chosen: null });
    new ResizeObserver(() => { if (place.clientWidth && place.clientWidth !== this.width) this.draw(); }).observe(place);
    this.draw();
  }

  /** The bound moved elsewhere, by a slider. */
  place(pace) {
    this.pace = pace;
    if (this.handle) this.put(this.handle);
  }

  draw() {
    const { points, band, bound } = this.front, bounded = bound !== null;
    this.width = this.root.clientWidth;
    const width = Math.max(260, this.width), times = points.flatMap(({ time }) => [time * band.from, time * band.to]);
    const values = points.map((one) => one.value), shown = bounded ? [...times, bound] : times;
    const low = Math.min(...shown), high = Math.max(...shown), margin = (high - low) * 0.05 || 1;
    const dear = Math.max(...values), cheap = Math.min(...values), over = (dear - cheap) * 0.1 || 1;
    this.x = scale(low - margin, high + margin, ROOM.left, width - ROOM.right);
    this.y = scale(cheap - over, dear + over, HEIGHT - ROOM.bottom, ROOM.top);
    const steps = (factor) => points.map((one, n) => `${n ? "H" : "M"}${this.at(one.time * factor)}${n ? "V" : ","}${this.up(one.value)}`).join("");
    const back = points.toReversed().map((one, n) => (n ? `V${this.up(one.value)}H` : "H") + this.at(one.time * band.to)).join("");
    this.handle = bounded ? this.bound() : null;
    this.root.replaceChildren(s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "group", "aria-label": this.front.sentences[0] },
      this.axes(width), band.says && s("path", { class: "margin", d: `${steps(band.from)}${back}Z` }, s("title", {}, band.says)),
      s("path", { class: "steps", d: `${steps(1)}H${width - ROOM.right}` }), points.map((one, n) => this.mark(one, n)), this.handle));
    if (bounded) this.put(this.handle);
    this.say(this.chosen ?? (bounded ? this.nearest() : 0));
  }

  at(time) { return this.x(time).toFixed(1); }

  up(value) { return this.y(value).toFixed(1); }

  axes(width) {
    const across = ticks(this.x.from, this.x.to, width < 500 ? 4 : 7), up = ticks(this.y.from, this.y.to, 5);
    return s("g", { class: "axes", "aria-hidden": "true" },
      up.map((one) => [s("line", { x1: ROOM.left, x2: width - ROOM.right, y1: this.y(one), y2: this.y(one) }), s("text", { x: ROOM.left - 8, y: this.y(one) + 4, "text-anchor": "end" }, one.toLocaleString("en"))]),
      across.map((one) => s("text", { x: this.x(one), y: HEIGHT - ROOM.bottom + 18, "text-anchor": "middle" }, one.toLocaleString("en"))),
      s("text", { x: width - ROOM.right, y: HEIGHT - 6, "text-anchor": "end" }, this.front.time_label),
      s("text", { x: 4, y: 13 }, this.front.value_label));
  }

  mark(point, number) {
    const take = () => { this.chosen = number; this.say(number); if (this.moves) this.move(point.pace, false); };
    const look = () => this.say(number), x = this.at(point.time), y = this.up(point.value);
    return s("g", { class: point.knee ? "dot knee" : "dot", role: "button", tabindex: 0, "aria-label": `${point.words}: ${point.built}.${this.moves ? " Set the bounds to this" : ""}`,
      click: take, mouseenter: look, focus: look, keydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); take(); } } },
    s("circle", { class: "reach", cx: x, cy: y, r: 14 }), s("circle", { class: "disc", cx: x, cy: y, r: point.knee ? 6.5 : 4.5 }));
  }

  /** Whether points and the line of the bound move the bounds of a question. */
  get moves() { return this.move !== null && this.front.bound !== null; }

  bound() {
    const line = s("line", { x1: 0, x2: 0, y1: ROOM.top, y2: HEIGHT - ROOM.bottom });
    if (!this.moves) return s("g", { class: "front-bound" }, line, s("title", {}, "the bound"));
    const [first, last] = [this.front.points[0].pace, Math.max(1, this.front.points.at(-1).pace)];
    const handle = s("g", { id: "front-bound", class: "front-bound", role: "slider", tabindex: 0, "aria-label": "All bounds, as a multiple of the question's bounds", "aria-valuemin": first.toFixed(3), "aria-valuemax": last.toFixed(3) },
      s("rect", { x: -9, y: ROOM.top, width: 18, height: HEIGHT - ROOM.top - ROOM.bottom, class: "grip" }), line, s("circle", { cx: 0, cy: ROOM.top, r: 6 }));
    const to = (pace, dragging) => { this.place(pace); this.move(pace, dragging); this.say(this.nearest()); };
    const paceAt = (event) => Math.max(this.x.back(event.clientX - this.root.getBoundingClientRect().left) / this.front.bound, 1e-3);
    handle.addEventListener("pointerdown", (event) => { handle.setPointerCapture(event.pointerId); event.preventDefault(); handle.focus(); });
    handle.addEventListener("pointermove", (event) => { if (handle.hasPointerCapture(event.pointerId)) to(paceAt(event), true); });
    handle.addEventListener("pointerup", (event) => { if (handle.hasPointerCapture(event.pointerId)) to(paceAt(event), false); });
    handle.addEventListener("keydown", (event) => {
      const by = { ArrowRight: STEP, ArrowUp: STEP, ArrowLeft: -STEP, ArrowDown: -STEP, PageUp: 10 * STEP, PageDown: -10 * STEP }[event.key];
      if (by) { event.preventDefault(); to(this.pace * (1 + by), false); }
    });
    return handle;
  }

  put(handle) {
    const left = Math.min(Math.max(this.x(this.pace * this.front.bound), ROOM.left), this.x(this.x.to));
    handle.setAttribute("transform", `translate(${left.toFixed(1)} 0)`);
    if (!this.moves) return;
    handle.setAttribute("aria-valuenow", this.pace.toFixed(3));
    handle.setAttribute("aria-valuetext", `${Math.round(100 * this.pace)}% of the bounds`);
  }

  /** The cheapest point within the bound. */
  nearest() {
    const within = this.front.points.filter((one) => one.pace <= this.pace * (1 + 1e-9));
    return Math.max(0, within.length - 1);
  }

  say(number) {
    const point = this.front.points[number], fast = this.front.bound !== null && this.pace < this.front.points[0].pace * (1 - 1e-9);
    const rows = point.details.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, tied(value))));
    const open = this.said.querySelector("details")?.open ?? false;
    this.said.replaceChildren(
      h("p", {}, h("strong", {}, tied(point.words)), point.knee ? " (knee)" : "", ` with ${tied(point.built)}`, fast ? "; no design shown here meets the bound" : ""),
      h("details", { class: "more", open }, h("summary", {}, "All figures of this point"), h("dl", { class: "facts" }, rows)));
  }
}

function scale(from, to, start, end) {
  const place = (value) => start + (value - from) / (to - from) * (end - start);
  return Object.assign(place, { from, to, back: (at) => from + (at - start) / (end - start) * (to - from) });
}

/** Round numbers between two others, about as many as asked for. */
function ticks(from, to, count) {
  const rough = (to - from) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const found = [];
  for (let n = Math.ceil(from / step); n * step <= to; n += 1) found.push(Number((n * step).toPrecision(12)));
  return found;
}
