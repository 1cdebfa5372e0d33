// What a key of a question may hold, read from the JSON Schema of questions.

const RANGE = "Range";

/** The form of a question and the names that it may use. */
export class Form {
  constructor(schema, catalog) {
    this.schema = schema;
    this.catalog = catalog;
  }

  /** The keys of a table with what each may hold. */
  keys(node = this.schema) {
    const required = new Set(node.required ?? []);
    return Object.entries(node.properties ?? {}).map(([key, inner]) => ({
      key, ...this.field(inner), needed: required.has(key), initial: inner.default,
      help: (inner.description ?? "").replace(/ \(docs\/[^)]*\)/g, ""), // the page has no files to look into
    }));
  }

  /** What the value at a path of keys and places may be; null where no such key is. */
  at(path) {
    let node = { kind: "table", node: this.schema };
    for (const step of path) {
      if (typeof step === "number") continue;
      if (!node || (node.kind !== "table" && node.kind !== "tables")) return null;
      node = this.keys(node.node).find((one) => one.key === step) ?? null;
    }
    return node;
  }

  /** The kind of a value: `table`, `tables`, `names`, `choice`, `number`, `flag` or `text`; `many` where a list will do, `alone` a number. */
  field(inner) {
    const options = this.options(inner);
    const nullable = options.some((one) => one.type === "null");
    const lists = options.filter((one) => one.type === "array");
    const many = lists.length > 0, alone = options.some((one) => one.type === "number" || one.type === "integer");
    const single = [...options, ...lists.flatMap((one) => this.options(one.items ?? {}))];
    const named = single.find((one) => one.form in this.catalog);
    const base = { many, nullable, alone };
    if (named && single.some((one) => one.form === "Changed")) return { ...base, kind: "names", form: named.form };
    const table = single.find((one) => one.properties && one.form !== RANGE);
    if (table) return { ...base, kind: many ? "tables" : "table", node: table };
    const values = [...new Set(single.flatMap((one) => one.enum ?? ("const" in one ? [one.const] : [])))];
    const number = single.find((one) => one.type === "number" || one.type === "integer");
    if (values.length && !number?.enum && number && !("const" in number)) return { ...base, kind: "mixed", values };
    if (values.length) return { ...base, kind: "choice", values };
    if (number) {
      const least = number.minimum ?? number.exclusiveMinimum;
      const range = single.some((one) => one.form === RANGE);
      return { ...base, kind: "number", integer: number.type === "integer", least, most: number.maximum, range };
    }
    if (single.some((one) => one.type === "boolean")) return { ...base, kind: many ? "choice" : "flag", values: [true, false] };
    return { ...base, kind: "text" };
  }

  /** The alternatives of a node, with references followed; `form` is the name that one was referred to by. */
  options(node) {
    if (node.$ref) {
      const form = node.$ref.split("/").pop();
      return this.options(this.schema.$defs[form]).map((one) => ({ ...one, form }));
    }
    return node.anyOf ? node.anyOf.flatMap((one) => this.options(one)) : [node];
  }

  /** Names of the catalog, or values, that a key may hold. */
  choices(field) {
    if (field.kind === "names") return this.catalog[field.form];
    if (field.kind === "flag") return [true, false].map((name) => ({ name, description: "" }));
    return (field.values ?? []).map((name) => ({ name, description: "" }));
  }
}

/** The value at a path; undefined where there is none. A list of one that is written as a table counts as a list. */
export function valueAt(table, path) {
  let here = table;
  for (const step of path) {
    if (here === undefined || here === null) return undefined;
    if (typeof step === "number" && !Array.isArray(here)) continue;
    here = here[step];
  }
  return here;
}

/** A range as it is read and typed, `256 to 1024 by 256`; null for what is none. */
export const rangeWords = (value) => (value && typeof value === "object" && "least" in value ? `${value.least} to ${value.most} by ${value.step}` : null);

export function rangeOf(text) {
  const [, least, most, step] = text.match(/^\s*(\d+) to (\d+) by (\d+)\s*$/) ?? [];
  return least === undefined ? null : { least: Number(least), most: Number(most), step: Number(step) };
}

const GROUPED = /^\d{1,3}(,\d{3})+(\.\d+)?$/; // a comma groups digits, a comma and a space separate numbers
const CUT = /(^|,)\s*0\d/; // no number begins so, but the rest of one that was grouped does
const AMOUNT = /^\$?\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([kMBT]?)$/; // as answers tell them: $25.5 M, 10 T
const TIMES = { "": 1, k: 1e3, M: 1e6, B: 1e9, T: 1e12 };
const SCALED = /(^|_)(usd|tokens)(_|$)/; // keys whose numbers are told so
const UNITS = [[/days$/, /\s*days?$/], [/_s$/, /\s*(s|tokens\/s)$/], [/_mw$/, /\s*MW$/], [/tokens$/, /\s*tokens$/], [/gpus$/, /\s*GPUs?$/]];

const bareNumber = (key, text) => text.trim().replace(UNITS.find(([of]) => of.test(key))?.[1] ?? "", "");

/** A number as a person types it: grouped digits, the unit of its key behind it, and k, M, B or T where money and tokens are told so. */
function typedNumber(key, text) {
  const bare = bareNumber(key, text);
  const plain = GROUPED.test(bare.replace(/^\$|\s*[kMBT]$/g, "")) ? bare.replaceAll(",", "") : bare;
  const [, amount, times] = (SCALED.test(key) && AMOUNT.exec(plain)) || [];
  return amount === undefined ? one(plain, text) : Number((amount * TIMES[times]).toPrecision(15));
}

/** What was typed: null for nothing, numbers as such, a list where there are commas or brackets; other text stays for the server to refuse. */
export function read(field, text) {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  if (field.kind === "text" && !field.many) return text;
  if (field.range && rangeOf(text)) return rangeOf(text);
  if (field.many) return several(field, trimmed);
  return typedNumber(field.key, trimmed);
}

const one = (part, typed = part) => (part.trim() !== "" && Number.isFinite(Number(part)) ? Number(part) : typed.trim());

/** One entry, or a list as it is spoken (`256, 512`) or as TOML has it (`["north", "south"]`). */
function several(field, text) {
  const inner = /^\[(.*)\]$/.exec(text)?.[1];
  const spoken = text.split(/,\s+/), isGrouped = (part) => GROUPED.test(bareNumber(field.key, part));
  if (inner === undefined && field.kind !== "text" && spoken.some(isGrouped) && spoken.every((part) => isGrouped(part) || !part.includes(","))) {
    const numbers = spoken.map((part) => typedNumber(field.key, part));
    return numbers.length > 1 ? numbers : numbers[0];
  }
  if (inner !== undefined && CUT.test(inner)) return text;
  const parts = [...(inner ?? text).matchAll(/\s*("[^"]*"|'[^']*'|[^,]+)/g)].map(([, part]) => part.trim()).filter(Boolean);
  const entries = parts.map((part) => (field.kind === "text" ? part.replace(/^(["'])(.*)\1$/, "$2") : typedNumber(field.key, part)));
  return inner === undefined && !text.includes(",") ? entries[0] : entries;
}

/** A number as `read` takes it: `500 B` tokens, `25,500,000`; years have no commas. */
function written(key, value) {
  if (typeof value !== "number") return String(value);
  const [prefix, size] = ["T", "B", "M"].map((one) => [one, TIMES[one]]).find(([, one]) => value >= one) ?? [];
  if (/tokens$/.test(key) && prefix) return `${Number((value / size).toPrecision(15))} ${prefix}`;
  return Number.isInteger(value) && value >= 1e4 ? value.toLocaleString("en") : String(value);
}

/** A value as `read` takes it: a list of one has brackets where it means something else than its number alone. */
export function typedAs(field, value) {
  if (value === undefined) return "";
  if (!Array.isArray(value)) return rangeWords(value) ?? written(field.key, value);
  return value.length === 1 && field.alone ? `[${value[0]}]` : value.map((one) => written(field.key, one)).join(", ");
}

export const listed = (value) => (value === undefined || value === null ? [] : Array.isArray(value) ? value : [value]);

export const idOf = (path) => `at-${path.join("-")}`;

/** The keys and places of a limit as it is told, `workload[0].train_days`. */
export const pathOf = (limit) => [...limit.matchAll(/(\w+)|\[(\d+)\]/g)].map(([, key, place]) => (place === undefined ? key : Number(place)));

/** A value as it is told, `1,024` or a text. */
export function valueOf(text) {
  const number = Number(text.replaceAll(",", ""));
  if (text.trim() !== "" && Number.isFinite(number)) return number;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
