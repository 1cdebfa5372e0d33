// Bounds as sliders: those of workloads, what sites feed and the limits that are set, on a scale of ratios.

import { h, byId, show } from "./dom.js";
import { idOf, listed, read, typedAs } from "./schema.js";

const BOUNDS = {
  max_iteration_time_s: ["iteration time at most", "s"], min_tokens_per_s: ["at least", "tokens/s"], train_days: ["trained within", "days"],
};
const BY = ["by", "trained by", "days"];  // a day, which a slider holds as days from the start
const IN_TURN = "train_days_total";  // moves with the bounds of the workloads that it adds up
const LIMITS = { power_mw: ["power", "MW"], capex_usd: ["purchase", "USD"], racks: ["racks", "racks"], [IN_TURN]: ["total days of training", "days"] };
const STEPS = 1000, REACH = 3;  // from a third of where a bound began to three times that

const DAY_MS = 86400e3;
const daysTo = (start, by) => (Date.parse(by) - Date.parse(start)) / DAY_MS;

/** A number of days as the last of them. */
const dayAfter = (start, days) => new Date(Date.parse(start) + Math.ceil(days - 1e-6) * DAY_MS).toISOString().slice(0, 10);

const isBound = (value) => typeof value === "number" && value > 0;

/** Whether a workload trains in a phase by its own bound. */
function keepsOwnBound(phase, name) {
  const rows = listed(phase?.workloads), row = rows.find((one) => (one?.name ?? one) === name);
  return !rows.length || (row !== undefined && [...Object.keys(BOUNDS), "train_tokens"].every((key) => (row?.[key] ?? null) === null));
}

/** Whose bound a workload's own is: `chat, 2028` where it does not hold in every phase. */
function ownerOf(table, name) {
  const phases = listed(table?.phase), held = phases.filter((phase) => keepsOwnBound(phase, name));
  return held.length === phases.length ? name : `${name}, ${held.map((phase) => phase.year).join(", ") || "no phase"}`;
}

/** Every bound that a question may state: its place, words, unit and value, which may be none or wrong. */
function places(table) {
  const take = (one, path, owner) =>
    Object.entries(BOUNDS).map(([key, [words, unit]]) => ({ path: [...path, key], owner, words, unit, value: one?.[key], paced: true }));
  const [by, words, unit] = BY, start = table?.cluster?.start;
  const last = (one, path, owner) => {
    const days = daysTo(start, one?.[by]);
    return [{ path: [...path, by], owner, words, unit, start, typed: one?.[by], value: Number.isNaN(days) ? one?.[by] : days, paced: true }];
  };
  return [
    ...listed(table?.workload).flatMap((one, place) =>
      [take, last].flatMap((of) => of(one, ["workload", place], ownerOf(table, one?.name ?? `workload ${place + 1}`)))),
    ...listed(table?.phase).flatMap((phase, year) => listed(phase?.workloads).flatMap((one, place) =>
      take(one, ["phase", year, "workloads", place], `${one?.name}, ${phase.year}`))),
    ...listed(table?.site).map((one, place) =>
      ({ path: ["site", place, "power_mw"], owner: one?.name ?? `site ${place + 1}`, words: "power at most", unit: "MW", value: one?.power_mw })),
    ...Object.entries(LIMITS).map(([key, [owner, unit]]) => ({ path: ["limits", key], owner, words: "at most", unit, value: table?.limits?.[key], paced: key === IN_TURN })),
  ];
}

/** Every bound of a question. */
export const boundsOf = (table) => places(table).filter((one) => isBound(one.value));

/** All of a question but the values of its workloads' bounds: where it is the same, so is the front. */
export const apartFromBounds = (table) => JSON.stringify(table, (key, value) => (key in BOUNDS || key === IN_TURN || key === BY[0] ? "bound" : value));

/** The pace of a question's bounds, as a multiple of those that a front was traced with. */
export function paceOf(front, table) {
  const now = boundsOf(table).filter((one) => one.paced);
  const before = now.length && front?.bounds.find((one) => one.path.join() === now[0].path.join());
  if (!before) return 1;
  return now[0].path.at(-1) === "min_tokens_per_s" ? before.value / now[0].value : now[0].value / before.value;
}

/** Changes that bring the bounds of a front to a pace. */
export const paced = (front, pace) => front.bounds.filter((one) => one.paced).map((one) =>
  [one.path, one.start ? dayAfter(one.start, one.value * pace)
    : reached(one.path.at(-1) === "min_tokens_per_s" ? one.value / pace : one.value * pace, one.path.at(-1))]);

/** A bound with six digits that is no tighter than it has to be. */
function reached(value, key) {
  const digits = Number(value.toPrecision(6)), step = 10 ** (Math.floor(Math.log10(value)) - 5);
  const tight = key === "min_tokens_per_s" ? digits > value : digits < value;
  return tight ? Number((digits + (key === "min_tokens_per_s" ? -step : step)).toPrecision(6)) : digits;
}

/** A number with four digits, as one would type it. */
const rounded = (value) => Number(value.toPrecision(4));

const shown = (value) =>
  value >= 1e6 ? `${rounded(value / 1e6).toLocaleString("en")} M` : rounded(value).toLocaleString("en");

/** The sliders, which stay while their question changes; `change(path, value, dragging)` hears of every move. */
export class Bounds {
  constructor(root, form, change) {
    Object.assign(this, { root, form, change, middle: new Map(), emptied: new Set(), dragged: null });
  }

  /** Another question has taken the place of this one. */
  forget() {
    this.names = null;
    this.emptied.clear();
  }

  update(table, complaints) {
    const found = places(table).filter((one) => (one.value ?? null) !== null || this.emptied.has(idOf(one.path)));
    const names = JSON.stringify(found.map((one) => [one.path, one.owner]));
    if (names !== this.names) {
      this.names = names;
      this.middle = new Map(found.map((one) => [idOf(one.path), isBound(one.value) ? one.value : this.middle.get(idOf(one.path))]));
      show(this.root, found.length ? h("h2", {}, "Bounds") : "", found.map((one) => this.row(one)));
    }
    for (const one of found) this.place(one, complaints);
  }

  row(one) {
    const name = idOf(one.path), id = name.replace("at-", "bound-");
    const moved = (event) => {
      this.dragged = event.type === "input" ? name : null;
      const value = this.middle.get(name) * REACH ** (2 * event.target.value / STEPS - 1);
      this.change(one.path, one.start ? dayAfter(one.start, value) : rounded(value), event.type === "input");
    };
    const typed = (event) => {
      const value = read(this.form.at(one.path), event.target.value);
      if (value === null) this.emptied.add(name);
      this.change(one.path, value, false);
    };
    return h("div", { class: "bound", id },
      h("label", { for: `${id}-slider` }, h("strong", {}, one.owner), ` ${one.words}`),
      h("span", { class: "bound-value" },
        h("input", { id: `${id}-number`, type: "text", inputmode: "decimal", autocomplete: "off", placeholder: "no bound",
          "aria-label": `${one.owner} ${one.words}, ${one.unit}`, "aria-describedby": `${id}-says`, change: typed }), one.start ? "" : ` ${one.unit}`),
      h("input", { id: `${id}-slider`, type: "range", min: 0, max: STEPS, step: 1, input: moved, change: moved }),
      h("div", { id: `${id}-says` }));
  }

  place(one, complaints) {
    const name = idOf(one.path), id = name.replace("at-", "bound-"), middle = this.middle.get(name);
    const slider = byId(`${id}-slider`), number = byId(`${id}-number`), wrong = complaints.filter((each) => each.path && idOf(each.path) === name);
    if (isBound(one.value)) {
      if (!middle || one.value < middle / REACH || one.value > middle * REACH) this.middle.set(name, one.value);
      slider.setAttribute("aria-valuetext", `${shown(one.value)} ${one.unit}`);
      if (this.dragged !== name) slider.value = Math.round(STEPS * (Math.log(one.value / this.middle.get(name)) / Math.log(REACH) + 1) / 2);
    }
    slider.disabled = !this.middle.get(name);
    if (document.activeElement !== number) number.value = typedAs(this.form.at(one.path), one.typed ?? one.value ?? undefined);
    number.setAttribute("aria-invalid", String(wrong.length > 0));
    show(byId(`${id}-says`), wrong.map((each) => h("p", { class: "wrong" }, each.sentence)));
  }
}
