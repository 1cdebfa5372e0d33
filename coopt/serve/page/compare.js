// Two questions side by side: the one that was kept, and the one that is edited.

import { h, show, tied } from "./dom.js";

/** `kept` and `now` are { text, table, plan, verdict }; `swap` and `end` are what the buttons do. */
export function showComparison(root, kept, now, { swap, end }) {
  if (!kept || !now?.plan) return show(root);
  const rows = figuresOf(kept.plan, now.plan);
  const changes = differences(kept.table, now.table);
  return show(root, h("section", { class: "compare", "aria-label": "Comparison" },
    h("div", { class: "row between" }, h("h2", {}, "Two answers side by side"), h("div", { class: "row" },
      h("button", { type: "button", id: "swap", click: swap }, "Swap"), h("button", { type: "button", id: "end-compare", click: end }, "End"))),
    h("div", { class: "pair" },
      h("div", {}, h("h3", {}, `Kept: ${kept.plan.name}`), h("p", {}, tied(kept.plan.headline))),
      h("div", {}, h("h3", {}, `Now: ${now.plan.name}`), h("p", {}, tied(now.plan.headline)))),
    counted(kept, now),
    h("div", { class: "scroll", role: "group", "aria-label": "Figures side by side", tabindex: 0 }, h("table", { class: "cards" },
      h("caption", {}, "Figures"), h("thead", {}, h("tr", {}, ["figure", "kept", "now", "difference"].map((name, n) => h("th", { scope: "col", class: n && "number" }, name)))),
      h("tbody", {}, rows.map(([name, ...cells]) => h("tr", {}, h("th", { scope: "row" }, name), cells.map((cell, place) => h("td", { class: "number", "data-name": ["kept", "now", "difference"][place] }, tied(cell)))))))),
    h("h3", {}, changes.length ? "How the questions differ" : "The questions are the same"),
    h("ul", { class: "reasons" }, changes.slice(0, 40).map(([key, before, after]) => h("li", {}, h("code", {}, key), `: ${before} before, ${after} now`)))));
}

/** What one bill counts and the other does not, GPUs or hosts, so that their totals are of different things. */
function counted(kept, now) {
  if (![kept, now].every(({ plan }) => plan.plan.cost)) return "";
  const lists = ({ plan }) => plan.plan.cost.items.some((one) => one.kind === "gpu");
  const hosts = ({ table }) => [table?.objective?.include ?? []].flat().includes("host");
  return [["includes GPUs that train", lists], ["includes servers", hosts]].filter(([, of]) => of(kept) !== of(now)).map(([what, of]) =>
    h("p", { class: "remark" }, `Only the ${of(kept) ? "kept" : "new"} bill ${what}. For comparable totals, include them in both (objective.include).`));
}

/** The figures of a plan, with the time of every workload in place of that of the slowest. */
function allFigures(plan, alone) {
  const times = (plan.runs ?? []).map((run) => ({ name: `${run.unit === "days" ? "Training" : "Iteration"}${alone ? "" : ` of ${run.name}`}`, value: run.time, number: run.number }));
  return [...plan.figures.filter((one) => !["s", "days", "workloads"].includes(one.unit)), ...times];
}

function figuresOf(...plans) {
  const alone = plans.every((plan) => plan.runs?.length === 1), [kept, now] = plans.map((plan) => allFigures(plan, alone));
  const names = [...new Set([...kept, ...now].map((one) => one.name))];
  return names.map((name) => {
    const [a, b] = [kept, now].map((figures) => figures.find((one) => one.name === name));
    const known = a?.number != null && b?.number != null;
    const share = known && a.number ? (b.number - a.number) / a.number : null;
    const text = !known ? "-" : b.number === a.number ? "same" : share === null ? "-" : `${share > 0 ? "+" : ""}${(100 * share).toFixed(1)}%`;
    return [name, a?.value ?? "-", b?.value ?? "-", text];
  });
}

/** Keys in which two tables differ, with both values in words. */
export function differences(before, after, path = "") {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  const inside = (one) => one !== null && typeof one === "object";
  if (inside(before) && inside(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    const plain = (one) => Array.isArray(one) && !one.some(inside);
    if (!plain(before) || !plain(after)) {
      return keys.flatMap((key) => differences(before[key], after[key], Array.isArray(before) ? `${path}[${key}]` : path ? `${path}.${key}` : key));
    }
  }
  const said = (one) => (one === undefined ? "not set" : JSON.stringify(one).slice(0, 80));
  return [[path || "the whole question", said(before), said(after)]];
}
