// A question as TOML text: lines with numbers, the line that is wrong, and completion of keys and names.

import { h } from "./dom.js";

const MOST = 60, LINE_PX = 20, CHAR = "0", CHARS = 10;

export class Editor {
  /** `typed(text)` hears of every edit. */
  constructor(root, form, typed) {
    Object.assign(this, { form, typed, options: [], chosen: 0 });
    this.lines = h("div", { class: "lines", "aria-hidden": "true" });
    this.area = h("textarea", {
      id: "toml", spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off", "aria-label": "The question as TOML",
      "aria-autocomplete": "list", "aria-controls": "completions", role: "combobox", "aria-expanded": "false",
      input: () => { this.typed(this.area.value); this.number(); this.complete(false); },
      keydown: (event) => this.key(event), scroll: () => this.scroll(), blur: () => this.close(), click: () => this.close(),
    });
    this.list = h("ul", { id: "completions", class: "completions", role: "listbox", "aria-label": "Completions", hidden: true });
    this.measure = h("span", { class: "measure", "aria-hidden": "true" }, CHAR.repeat(CHARS));
    root.append(h("p", { class: "help" }, "Keys and catalog names are completed as you type; Ctrl+Space lists them."),
      h("div", { class: "editor" }, this.lines, this.area, this.list, this.measure));
  }

  update(text, complaints) {
    if (this.area.value !== text && document.activeElement !== this.area) this.area.value = text;
    const place = complaints.map((one) => /line (\d+), column (\d+)/.exec(one.sentence)).find(Boolean);
    this.wrong = place ? Number(place[1]) : null;
    this.number();
  }

  number() {
    const count = this.area.value.split("\n").length;
    this.area.rows = Math.max(12, Math.min(count, 40));
    this.lines.replaceChildren(...Array.from({ length: count }, (_, n) => h("span", { class: n + 1 === this.wrong ? "wrong-line" : null }, String(n + 1))));
    this.scroll();
  }

  scroll() {
    this.lines.scrollTop = this.area.scrollTop;
    this.close();
  }

  key(event) {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      this.complete(true);
      return;
    }
    if (this.list.hidden) return;
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in moves) this.mark((this.chosen + moves[event.key] + this.options.length) % this.options.length);
    else if (event.key === "Enter" || event.key === "Tab") this.take(this.options[this.chosen]);
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
  }

  /** Offer what may stand where the cursor is; all of it where it was asked for. */
  complete(asked) {
    const before = this.area.value.slice(0, this.area.selectionStart);
    const found = completions(this.form, before);
    const word = found.word.toLowerCase();
    const fits = found.options.filter((one) => one.name.toLowerCase().includes(word) && one.name !== found.word);
    fits.sort((a, b) => b.name.toLowerCase().startsWith(word) - a.name.toLowerCase().startsWith(word));
    this.options = (asked || found.quoted || word.length > 0 ? fits : []).slice(0, MOST);
    this.word = found.word;
    this.quoted = found.quoted;
    if (!this.options.length) return this.close();
    this.list.replaceChildren(...this.options.map((one, place) => h("li", {
      role: "option", id: `completion-${place}`, mousedown: (event) => { event.preventDefault(); this.take(one); },
    }, h("strong", {}, one.name), h("span", { class: "help" }, one.help))));
    const row = before.split("\n").length - 1, column = before.length - before.lastIndexOf("\n") - 1 - found.word.length;
    const width = this.measure.getBoundingClientRect().width / CHARS;
    this.list.hidden = false;
    this.list.style.top = `${(row + 1) * LINE_PX + 10 - this.area.scrollTop}px`;
    const most = this.area.parentElement.clientWidth - this.list.offsetWidth;
    this.list.style.left = `${Math.max(0, Math.min(44 + column * width - this.area.scrollLeft, most))}px`;
    this.area.setAttribute("aria-expanded", "true");
    this.mark(0);
    return undefined;
  }

  mark(place) {
    this.chosen = place;
    [...this.list.children].forEach((one, n) => one.setAttribute("aria-selected", String(n === place)));
    this.list.children[place].scrollIntoView({ block: "nearest" });
    this.area.setAttribute("aria-activedescendant", `completion-${place}`);
  }

  take(option) {
    const end = this.area.selectionStart, text = this.quoted === null ? option.insert : this.quoted ? option.name : JSON.stringify(option.name);
    this.area.setRangeText(text, end - this.word.length, end, "end");
    this.close();
    this.typed(this.area.value);
    this.number();
  }

  close() {
    this.list.hidden = true;
    this.area.setAttribute("aria-expanded", "false");
    this.area.removeAttribute("aria-activedescendant");
  }
}

/** What may follow a text: the word that was begun, and the names or keys it may become. */
export function completions(form, before) {
  const lines = before.split("\n"), line = lines.pop();
  const header = [...lines].reverse().map((one) => /^\s*\[\[?([\w.]+)\]\]?/.exec(one)).find(Boolean);
  const table = header ? header[1].split(".") : [];
  const opening = /^\s*\[\[?([\w.]*)$/.exec(line);
  if (opening) return { word: opening[1], quoted: null, options: tables(form) };
  const whole = [...lines, line];
  let row = whole.length - 1;
  while (row > 0 && !/^\s*[\w.]+\s*=/.test(whole[row]) && !/^\s*\[/.test(whole[row])) row -= 1;
  const pair = /^\s*([\w.]+)\s*=/.exec(whole[row]);
  const own = /^\s*([\w.]*)$/.exec(line);
  const done = !pair || row < whole.length - 1 && !/[[,]\s*(#.*)?$/.test(whole.slice(row, -1).join("\n"));
  if (own && done) return { word: own[1], quoted: null, options: keys(form, table) };
  if (!pair || /#[^"']*$/.test(line)) return { word: "", quoted: null, options: [] };
  const value = whole.slice(row).join("\n").slice(pair[0].length);
  const quoted = (value.match(/"/g) ?? []).length % 2 === 1;
  const word = quoted ? /[^"]*$/.exec(value)[0] : /[\w.-]*$/.exec(value)[0];
  const field = form.at([...table, ...pair[1].split(".")]);
  if (!field || !["names", "choice", "flag", "mixed"].includes(field.kind)) return { word: "", quoted, options: [] };
  return { word, quoted: quoted ? true : null, options: form.choices(field).map((one) => ({
    name: String(one.name), help: one.description, insert: typeof one.name === "string" ? JSON.stringify(one.name) : String(one.name),
  })) };
}

const keys = (form, path) => {
  const table = form.at(path);
  return table?.node ? form.keys(table.node).map((one) => ({ name: one.key, help: one.help, insert: `${one.key} = ` })) : [];
};

function tables(form, path = []) {
  const table = form.at(path);
  return form.keys(table.node).filter((one) => one.kind === "table" || one.kind === "tables").flatMap((one) => {
    const name = [...path, one.key].join(".");
    return [{ name, help: one.help, insert: name }, ...(path.length < 2 ? tables(form, [...path, one.key]) : [])];
  });
}

