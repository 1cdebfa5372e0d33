// Bounds as sliders: those of workloads and the limits that are set, on a scale of ratios.

import { h, byId, show } from "./dom.js";
import { listed } from "./schema.js";

const BOUNDS = {
  max_iteration_time_s: ["iteration at most", "s"], min_tokens_per_s: ["at least", "tokens/s"], train_days: ["trained within", "days"],
};
const LIMITS = { power_mw: ["power", "MW"], capex_usd: ["purchase", "USD"], racks: ["racks", "racks"] };
const STEPS = 1000, REACH = 3;  // from a third of where a bound began to three times that

/** Every bound of a question: its place, words, unit and value. */
export function boundsOf(table) {
  const found = [];
  const take = (one, path, owner) => {
    for (const [key, [words, unit]] of Object.entries(BOUNDS)) {
      if (one?.[key] > 0) found.push({ path: [...path, key], owner, words, unit, value: one[key], paced: true });
    }
  };
  listed(table?.workload).forEach((one, place) => take(one, ["workload", place], one?.name ?? `workload ${place + 1}`));
  listed(table?.phase).forEach((phase, year) => listed(phase?.workloads).forEach((one, place) =>
    take(one, ["phase", year, "workloads", place], `${one?.name}, ${phase.year}`)));
  for (const [key, [owner, unit]] of Object.entries(LIMITS)) {
    const value = table?.limits?.[key];
    if (value > 0) found.push({ path: ["limits", key], owner, words: "at most", unit, value });
  }
  return found;
}

/** A number with four digits, as one would type it. */
export const rounded = (value) => Number(value.toPrecision(4));

export const shown = (value) =>
  value >= 1e6 ? `${rounded(value / 1e6).toLocaleString("en")} M` : rounded(value).toLocaleString("en");

/** The sliders, which stay while their question changes; `change(path, value, dragging)` hears of every move. */
export class Bounds {
  constructor(root, change) {
    this.root = root;
    this.change = change;
    this.middle = new Map();
    this.dragged = null;
  }

  update(table, complaints) {
    const found = boundsOf(table), names = found.map((one) => one.path.join("."));
    if (names.join() !== this.names) {
      this.names = names.join();
      this.middle = new Map(found.map((one) => [one.path.join("."), one.value]));
      show(this.root, found.length ? h("h2", {}, "Bounds") : "", found.map((one) => this.row(one)));
    }
    for (const one of found) this.place(one, complaints);
  }

  row(one) {
    const name = one.path.join("."), id = `bound-${name.replaceAll(".", "-")}`;
    const moved = (event) => {
      this.dragged = event.type === "input" ? name : null;
      this.change(one.path, rounded(this.middle.get(name) * REACH ** (2 * event.target.value / STEPS - 1)), event.type === "input");
    };
    const typed = (event) => {
      const value = Number(event.target.value);
      if (event.target.value !== "" && Number.isFinite(value)) this.change(one.path, value, false);
    };
    return h("div", { class: "bound", id },
      h("label", { for: `${id}-slider` }, h("strong", {}, one.owner), ` ${one.words}`),
      h("span", { class: "bound-value" },
        h("input", { id: `${id}-number`, type: "number", step: "any", "aria-label": `${one.owner} ${one.words}, ${one.unit}`, change: typed }), ` ${one.unit}`),
      h("input", { id: `${id}-slider`, type: "range", min: 0, max: STEPS, step: 1, input: moved, change: moved }));
  }

  place(one, complaints) {
    const name = one.path.join("."), id = `bound-${name.replaceAll(".", "-")}`, middle = this.middle.get(name);
    const slider = byId(`${id}-slider`), number = byId(`${id}-number`);
    if (one.value < middle / REACH || one.value > middle * REACH) this.middle.set(name, one.value);
    slider.setAttribute("aria-valuetext", `${shown(one.value)} ${one.unit}`);
    if (this.dragged !== name) slider.value = Math.round(STEPS * (Math.log(one.value / this.middle.get(name)) / Math.log(REACH) + 1) / 2);
    if (document.activeElement !== number) number.value = one.value;
    const wrong = complaints.some((each) => each.path?.join(".") === name);
    number.toggleAttribute("aria-invalid", wrong);
  }
}
