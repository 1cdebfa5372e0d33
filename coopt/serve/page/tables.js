// Tables of an answer: sorted by a click on a column, copied for a spreadsheet, scrolling inside themselves.

import { h, tied } from "./dom.js";

const textOf = (cell) => (typeof cell === "string" ? cell : cell.text);
const shownCell = (cell) => (typeof cell === "string" ? breaking(tied(cell)) : h("span", { class: cell.mark }, cell.text));

const LONG = 60;  // letters of a cell that would be a tall column on a narrow screen

/** A text whose keys go on in a second line behind a dot or an underscore, where they read best. */
const breaking = (text) => text.split(/(?<=[a-z\]][._])(?=[a-z])/).flatMap((part, place) => (place ? [h("wbr"), part] : [part]));

/** A document of a table as an element: names with what they are, or rows of words and numbers. */
export function table(given) {
  if (given.form === "text") return h("p", { class: "remark" }, tied(given.text));
  return given.form === "facts" ? factList(given) : figureTable(given);
}

function factList({ title, rows }) {
  return h("div", {}, title ? h("h3", {}, title) : "",
    h("dl", { class: "facts" }, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, shownCell(value))))));
}

function figureTable({ title, words, numbers, rows, total }) {
  const names = [...words, ...numbers], isNumber = (column) => column >= words.length;
  const body = h("tbody");
  const state = { column: -1, falling: false };
  const fill = () => body.replaceChildren(...sorted(rows, state, isNumber).map((row) => h("tr", {}, row.map((cell, column) => cellOf(cell, column, isNumber(column), names[column])))));
  const heads = names.map((name, column) => h("th", { scope: "col", class: isNumber(column) && "number" },
    h("button", { type: "button", class: "sort", click: () => {
      state.falling = state.column === column ? !state.falling : isNumber(column);
      state.column = column;
      heads.forEach((head, n) => (n === column ? head.setAttribute("aria-sort", state.falling ? "descending" : "ascending") : head.removeAttribute("aria-sort")));
      fill();
    } }, name)));
  fill();
  const copy = h("button", { type: "button", class: "copy", "aria-label": `Copy the table: ${title}`, click: async (event) => {
    const lines = [names, ...sorted(rows, state, isNumber), ...(total ? [total] : [])];
    await navigator.clipboard?.writeText(lines.map((line) => line.map(textOf).join("\t")).join("\n"));
    event.target.textContent = navigator.clipboard ? "Copied" : "Needs https";
    setTimeout(() => { event.target.textContent = "Copy"; }, 1500);
  } }, "Copy");
  return h("div", { class: "sheet" }, copy,
    h("div", { class: "scroll", role: "group", "aria-label": title, tabindex: 0 },
      h("table", { class: isWide(names.length, rows) && "cards" }, h("caption", {}, h("span", {}, title)), h("thead", {}, h("tr", {}, heads)), body,
        total ? h("tfoot", {}, h("tr", {}, total.map((cell, column) => cellOf(cell, column, isNumber(column), names[column])))) : "")));
}

/** Whether rows of a table are cards on a narrow screen. */
const isWide = (columns, rows) => columns > 3 || rows.some((row) => row.some((cell) => textOf(cell).length > LONG));

const cellOf = (cell, column, number, name) =>
  h(column ? "td" : "th", { scope: column ? null : "row", "data-name": column ? name : null, class: number ? "number" : textOf(cell).length > LONG && "long" }, shownCell(cell));

function sorted(rows, { column, falling }, isNumber) {
  if (column < 0) return rows;
  const key = (row) => (isNumber(column) ? numberOf(textOf(row[column])) : textOf(row[column]));
  const order = (a, b) => (isNumber(column) ? key(a) - key(b) : key(a).localeCompare(key(b)));
  return [...rows].sort((a, b) => (falling ? -order(a, b) : order(a, b)));
}

/** The number that a cell begins with, in the unit of its column; what is no number comes last. */
function numberOf(text) {
  const found = /-?[\d,]*\.?\d+(?:e[+-]?\d+)?/i.exec(text);
  if (!found) return -Infinity;
  const scale = { ms: 1e-3, us: 1e-6, k: 1e3, kW: 1e3, M: 1e6, MW: 1e6, B: 1e9 }[/^\s*([a-zA-Z]+)/.exec(text.slice(found.index + found[0].length))?.[1]] ?? 1;
  return Number(found[0].replaceAll(",", "")) * scale;
}
