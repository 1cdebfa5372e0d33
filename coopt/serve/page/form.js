// A question as a form: a section for each table, a field for each key, what is wrong beside it.

import { byId, h, show } from "./dom.js";
import { idOf, listed, read, typedAs, valueAt } from "./schema.js";

const ORDER = [
  "cluster", "workload", "network", "objective", "limits", "availability", "margin", "sharing", "phase", "site", "wan", "robust", "solver",
];
const APART = ["schema", "name", "description", "catalog"]; // no files of one's own are read here
const RANGED = "256; or 256, 512; or 256 to 1024 by 256";
const OWN = "a table in the TOML text; edit it there";

/** Where a table stands in the form; one that has no place there comes last. */
function placeOf({ key }) {
  return ORDER.includes(key) ? ORDER.indexOf(key) : ORDER.length;
}

/** The form; `change(changes)` hears of every edit as pairs of a path and a value, null for a key that goes away. */
export class QuestionForm {
  constructor(root, form, change) {
    Object.assign(this, { root, form, change, opened: new Map() });
  }

  update(table, complaints) {
    this.table = table ?? {};
    this.complaints = complaints;
    const keys = this.form.keys();
    const sections = keys.filter((one) => !APART.includes(one.key)).sort((a, b) => placeOf(a) - placeOf(b));
    const plain = keys.filter((one) => ["name", "description"].includes(one.key));
    show(this.root,
      this.folded("about", "Name and description", "", plain.map((field) => this.row(field, [field.key])), false),
      sections.map((field) => this.section(field)));
  }

  section(field) {
    const path = [field.key], value = valueAt(this.table, path);
    const open = ["cluster", "workload", "network"].includes(field.key) || value !== undefined;
    return this.folded(field.key, field.key.replaceAll("_", " "), field.help, this.content(field, path), open && field.key !== "solver");
  }

  /** A section that folds, and stays as it was left. */
  folded(name, title, help, content, open) {
    const wrong = this.complaints.some((one) => one.path?.[0] === name);
    const kept = this.opened.get(name) ?? open;
    return h("details", { class: "section", open: kept || wrong, toggle: (event) => this.opened.set(name, event.target.open) },
      h("summary", {}, h("span", { class: "section-name" }, title), " ", h("span", { class: "help" }, help)), content);
  }

  content(field, path) {
    if (field.kind === "tables") return this.tables(field, path);
    const value = valueAt(this.table, path);
    if (field.nullable && value === undefined) {
      return h("button", { type: "button", class: "add", click: () => this.change([[path, {}]]) }, `Add ${path.at(-1).replaceAll("_", " ")}`);
    }
    const remove = field.nullable ? h("button", { type: "button", class: "remove", click: () => this.change([[path, null]]) }, "Remove") : "";
    return [this.fields(field.node, path), remove];
  }

  tables(field, path) {
    const rows = listed(valueAt(this.table, path)), title = path.at(-1).replaceAll("_", " ");
    const add = () => this.change([[[...path, rows.length], begun(path, rows, this.table)]]);
    return [
      rows.map((row, place) => h("fieldset", {},
        h("legend", {}, `${title} ${row?.name ?? row?.item ?? row?.year ?? place + 1}`),
        this.fields(field.node, [...path, place]),
        h("button", { type: "button", class: "remove", "aria-label": `Remove ${title} ${place + 1}`, click: () => this.change([[[...path, place], null]]) }, "Remove"))),
      h("button", { type: "button", class: "add", click: add }, `Add ${title}`),
    ];
  }

  /** The keys of a table: those that are set, and the others folded away. */
  fields(node, path) {
    const rows = this.form.keys(node).map((field) => [field, [...path, field.key]]);
    const isShown = ([field, place]) =>
      field.needed || valueAt(this.table, place) !== undefined || this.about(place).length > 0;
    const rest = rows.filter((row) => !isShown(row)), name = `more ${path.join(".")}`;
    return [
      rows.filter(isShown).map(([field, place]) => this.row(field, place)),
      rest.length ? h("details", { class: "more", open: this.opened.get(name) ?? false, toggle: (event) => this.opened.set(name, event.target.open) },
        h("summary", {}, `Keys at their defaults: ${rest.length}`), rest.map(([field, place]) => this.row(field, place))) : "",
    ];
  }

  about(path) {
    const name = path.join(".");
    return this.complaints.filter((one) => one.path && (one.path.join(".") === name || one.path.join(".").startsWith(`${name}.`)));
  }

  row(field, path) {
    if (field.kind === "table" || field.kind === "tables") {
      return h("fieldset", {}, h("legend", {}, path.at(-1).replaceAll("_", " ")), h("p", { class: "help" }, field.help), this.content(field, path));
    }
    const id = idOf(path), wrong = this.about(path);
    const says = wrong.length ? `${id}-says` : null;
    const several = field.kind === "names" && field.many || field.kind === "choice" && field.many;
    const control = this.control(field, path, { id, "aria-describedby": says, "aria-invalid": wrong.length > 0 && "true" });
    const name = h("span", { class: "key" }, path.at(-1));
    const head = several ? h("legend", {}, name, " ", h("span", { class: "help" }, field.help))
      : h("label", { for: id }, name, " ", h("span", { class: "help" }, field.help));
    const sentence = wrong.map((one) => h("p", { class: "wrong" }, one.sentence));
    const row = several ? "fieldset" : "div";
    return h(row, { class: `field${wrong.length ? " is-wrong" : ""}` }, head, control, h("div", { id: `${id}-says` }, sentence));
  }

  control(field, path, common) {
    const value = valueAt(this.table, path);
    const put = (given) => this.change(path.at(-1) === "model" ? remodelled(this.table, path, given) : [[path, given]]);
    if (field.kind === "names" || field.kind === "choice") return field.many ? this.checks(field, value, put, common) : this.list(field, value, put, common);
    if (field.kind === "flag") {
      return h("input", { ...common, type: "checkbox", checked: value ?? field.initial ?? false, change: (event) => put(event.target.checked) });
    }
    const text = typedAs(field, value);
    const hint = field.range ? RANGED : listed(field.initial).join(", ");
    const typed = (event) => put(read(field, event.target.value));
    if (path.at(-1) === "description") return h("textarea", { ...common, rows: 3, change: typed }, text);
    const numeric = field.kind === "number" && !field.many;
    return h("input", { ...common, type: "text", inputmode: numeric ? "decimal" : null, value: text, placeholder: hint, autocomplete: "off", change: typed });
  }

  list(field, value, put, common) {
    const choices = this.form.choices(field), own = value !== undefined && typeof value === "object";
    const initial = field.initial === undefined || field.initial === null || typeof field.initial === "object" ? "not set" : `${field.initial} (default)`;
    const known = choices.some((one) => one.name === value);
    return h("select", { ...common, title: choices.find((one) => one.name === value)?.description, change: (event) => put(event.target.value === "" ? null : JSON.parse(event.target.value)) },
      h("option", { value: "", selected: value === undefined }, initial),
      own || (value !== undefined && !known) ? h("option", { value: JSON.stringify(value), selected: true }, own ? `${value.name ?? value.extends}: ${OWN}` : String(value)) : "",
      choices.map((one) => h("option", { value: JSON.stringify(one.name), selected: one.name === value }, String(one.name))));
  }

  /** How an entry with another price is written, where entries have prices. */
  ownHint(field, { name }) {
    const keys = this.form.options({ $ref: `#/$defs/${field.form}` }).flatMap((one) => Object.keys(one.properties ?? {}));
    const price = ["usd", "usd_per_gpu"].find((key) => keys.includes(key));
    return price ? h("p", { class: "help" }, "To use your own product or price, write a table in the TOML text: ", h("code", {}, `{ extends = "${name}", ${price} = 1_000 }`)) : "";
  }

  /** Names to choose several of; those chosen come first where there are many. */
  checks(field, value, put, common) {
    const chosen = listed(value ?? field.initial), choices = this.form.choices(field);
    const others = chosen.filter((one) => !choices.some((each) => each.name === one));
    const toggled = (name, on) => {
      const next = on ? [...chosen, name] : chosen.filter((one) => one !== name);
      put(next.length ? next : null);
    };
    const check = ({ name, description }, place) => h("label", { class: "chip", title: description },
      h("input", { type: "checkbox", id: `${common.id}-${place}`, "aria-describedby": common["aria-describedby"], checked: chosen.includes(name), change: (event) => toggled(name, event.target.checked) }),
      String(name));
    const places = choices.map((one, place) => [one, place]);
    const on = places.filter(([one]) => chosen.includes(one.name)), off = places.filter(([one]) => !chosen.includes(one.name));
    const name = `names ${common.id}`, few = choices.length <= 6;
    return h("div", { class: "chips" },
      others.map((one) => h("span", { class: "chip own", title: OWN }, one?.name ?? one?.extends ?? String(one))),
      (few ? places : on).map(([one, place]) => check(one, place)),
      few ? "" : h("details", { class: "more", open: this.opened.get(name) ?? false, toggle: (event) => this.opened.set(name, event.target.open) },
        h("summary", {}, `${off.length} others`), h("div", { class: "chips" }, off.map(([one, place]) => check(one, place))),
        this.ownHint(field, choices.find((one) => chosen.includes(one.name)) ?? choices[0])));
  }
}

/** What a new row begins with: the last one with a name and a year of its own; what trains in a phase, and what a channel joins, have their names already. */
function begun(path, rows, table) {
  const names = (key) => listed(table[key]).map((one) => one?.name).filter(Boolean);
  if (path[0] === "phase" && path.at(-1) === "workloads") {
    const left = names("workload").filter((name) => !rows.some((row) => (row?.name ?? row) === name));
    return left.length ? { name: left[0] } : {};
  }
  const last = rows.at(-1);
  if (path[0] === "wan" && !last) return names("site").length > 1 ? { between: names("site").slice(0, 2) } : {};
  return { ...last, ...(last?.name ? { name: `${last.name} 2` } : {}), ...(typeof last?.year === "number" ? { year: last.year + 1 } : {}) };
}

/** The changes that give a workload another model; its name goes along where it was that of the model, and nothing else calls it so. */
function remodelled(table, path, model) {
  const workload = valueAt(table, path.slice(0, -1)), { model: before, name } = workload ?? {}, changes = [[path, model]];
  if (typeof before !== "string" || typeof model !== "string" || !String(name).startsWith(before)) return changes;
  const next = name.replace(before, model), told = JSON.stringify([table.phase, table.sharing]);
  const taken = listed(table.workload).some((one) => one?.name === next) || told.includes(JSON.stringify(name));
  return taken ? changes : [...changes, [[...path.slice(0, -1), "name"], next]];
}

/** Bring a field of the form into view, or the text where the mistake has no field. */
export function showField(path) {
  byId("see-question").click();
  byId(path ? "tab-form" : "tab-text").click();
  const id = path ? idOf(path) : "toml", kinds = ":is(input, select, textarea)";
  const field = document.querySelector(`${kinds}[id="${id}"]`) ?? document.querySelector(`${kinds}[id^="${id}-"]`);
  for (let here = field?.closest("details"); here; here = here.parentElement.closest("details")) here.open = true;
  if (!field && path.length) return showField(path.slice(0, -1));
  field?.focus();
  return field?.scrollIntoView({ block: "center" });
}
