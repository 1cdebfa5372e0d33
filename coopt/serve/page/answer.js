// The answer: decision, figures at a glance, times against bounds, bill, drawings, proof; and what has to give.

import { h, s, show, tied } from "./dom.js";
import { listed } from "./schema.js";
import { table } from "./tables.js";
import { zoomButtons } from "./zoom.js";

const BAR_PX = 26;

/** The decision with its verdict and figures. `verdict` is null until the verifier has spoken; `apply(changes)` picks another choice. */
export function showDecision(root, plan, verdict, apply) {
  const badge = badgeOf(plan, verdict);
  show(root,
    h("p", { class: `badge ${badge.look}` }, h("strong", {}, badge.title), " ", badge.text),
    plan.picks.length ? choice(plan.picks, apply) : "",
    h("p", { class: "decision" }, tied(plan.headline)),
    plan.explanation.map((sentence) => h("p", { class: "why" }, tied(sentence))),
    plan.figures.length ? h("dl", { class: "glances" }, plan.figures.map((one) => h("div", {},
      h("dt", {}, one.name), h("dd", {}, h("span", { class: "value" }, tied(one.value)), note(one.note))))) : "",
    plan.parts ? table(plan.parts) : "");
}

/** What stands below a figure; that it is close is marked. */
function note(text) {
  const [first, ...others] = text.split("; ");
  return h("span", { class: "note" }, h("span", { class: first.startsWith("close") ? "warn" : "" }, tied(first)), tied(["", ...others].join("; ")));
}

/** The best of the choices that the question leaves open, and the others, one of which can be written into the question. */
function choice(picks, apply) {
  const pick = (event) => apply(picks[event.target.value].changes);
  const none = picks.some((one) => one.chosen) ? [] : [h("option", { value: "", selected: true }, "none")];
  return h("label", { class: "pick" }, "Chosen from the listed choices; select another to write it into the question ", h("select", { id: "choice", change: pick },
    none, picks.map((one, place) => h("option", { value: place, selected: one.chosen }, one.name))));
}

/** What may be said of an answer: a plan is verified or not; that there is none is no success. */
function badgeOf(plan, verdict) {
  const infeasible = plan.status === "infeasible";
  if (plan.status === "unknown") return { look: "plain", title: "No plan found.", text: "A plan may still exist: infeasibility is not proven." };
  if (!verdict) return { look: "plain", title: infeasible ? "Infeasible." : "Found.", text: "Not verified yet." };
  if (!verdict.accepted) return { look: "bad", title: "Do not build from this answer.", text: verdict.headline };
  if (infeasible && !verdict.best) return { look: "warn", title: "Infeasibility is not proven.", text: verdict.headline };
  if (infeasible) return { look: "warn", title: "Infeasible.", text: `No design is possible${verdict.trusted ? "" : "; the verifier agrees"}. ${verdict.headline}` };
  const best = verdict.trusted ? "Verified, in part on the solver's word." : "Verified.";
  const title = plan.status === "optimal" && verdict.best ? best : "Verified, not proven best.";
  return { look: "good", title, text: verdict.headline };
}

/** Everything behind the decision, in sections that fold. */
export function showEvidence(root, plan, verdict) {
  const opened = new Map([...root.querySelectorAll("details[data-name]")].map((one) => [one.dataset.name, one.open]));
  const part = (name, title, open, ...content) =>
    h("details", { class: "part", "data-name": name, open: opened.get(name) ?? open }, h("summary", {}, h("h2", {}, title)), content);
  show(root,
    plan.runs?.length ? part("times", "Times and bounds", true, times(plan.runs), plan.margins ? table(plan.margins) : "") : "",
    plan.whole ? part("whole", "The plan as one picture", true, figure(plan.whole, true)) : "",
    plan.timelines?.length ? part("timelines", "An iteration, stage by stage", false, h("p", { class: "remark" }, "Light grey: a stage waits in the pipeline schedule. Point at a colour to see what it means."), plan.runs.map((run, place) => [h("h3", {}, run.name), framed(plan.timelines[place], "Timeline")])) : "",
    plan.remarks?.length ? part("remarks", "What to know before you build", true, h("ul", { class: "reasons" }, plan.remarks.map((sentence) => h("li", {}, tied(sentence))))) : "",
    plan.bill ? part("bill", "The bill", true, table(plan.bill)) : "",
    plan.origins ? part("origins", "Where prices come from", false, table(plan.origins)) : "",
    plan.drawings?.length ? part("drawing", "Drawings of the network", true, drawings(plan.drawings, root)) : "",
    part("proof", "The proof", false, table(plan.search), verdict ? table(verdict.checks) : ""),
    plan.sections ? part("details", "All figures of the plan", false, plan.sections.map(table)) : "");
}

/** One bar a workload, on a common scale of shares of the bound. */
function times(runs) {
  const most = Math.max(100, ...runs.map((run) => run.segments.reduce((sum, one) => sum + one.share, 0)));
  const colours = new Map(runs.flatMap((run) => run.segments.map((one) => [one.name, one.colour])));
  return [
    h("p", { class: "remark" }, `Each bar is one iteration, from the left${runs.some((run) => run.bound) ? "; the vertical line is its bound, to which it is scaled" : ""}.`),
    h("ul", { class: "legend" }, [...colours].map(([name, colour]) => h("li", {}, s("svg", { width: 11, height: 11, "aria-hidden": "true" }, s("rect", { class: "segment", width: 11, height: 11, rx: 2, fill: colour })), name))),
    h("div", { class: "runs" }, runs.map((run) => h("div", { class: "run" },
      h("p", { class: "run-name" }, h("strong", {}, run.name), ` ${tied(run.time)}${run.bound ? ` of ${tied(run.bound)}` : ""}`, run.close ? h("span", { class: "warn" }, " close") : ""),
      s("svg", { class: "bar", role: "img", "aria-label": `${run.name}: ${run.says}`, width: "100%", height: BAR_PX },
        s("rect", { class: "track", width: "100%", height: BAR_PX, rx: 3 }),
        run.segments.map((one) => s("rect", { class: "segment", x: `${100 * one.start / most}%`, width: `${100 * one.share / most}%`, height: BAR_PX, fill: one.colour }, s("title", {}, one.says))),
        run.bound && s("rect", { class: "bound-mark", x: `${10_000 / most - 0.4}%`, width: "0.4%", height: BAR_PX })),
      h("p", { class: "help" }, tied(run.segments.map((one) => one.says).join("; ")))))),
  ];
}

/** A drawing in a frame that scrolls. */
function framed(svg, name) {
  const image = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  return h("div", { class: "scroll", role: "group", "aria-label": name, tabindex: 0 }, document.importNode(image, true));
}

function figure({ svg, caption }, zooms = false) {
  const frame = framed(svg, "Drawing");
  return h("figure", {}, zooms ? zoomButtons(frame) : "", frame, h("figcaption", {}, tied(caption)));
}

function drawings(drawn, root) {
  const before = root.querySelector("#drawing-of")?.value;
  const name = drawn.some((one) => one.name === before) ? before : drawn[0].name;
  const place = h("div");
  const draw = (chosen) => {
    const one = drawn.find((each) => each.name === chosen);
    place.replaceChildren(figure(one));
  };
  draw(name);
  if (drawn.length === 1) return place;
  return [
    h("label", { class: "pick" }, "Network ", h("select", { id: "drawing-of", change: (event) => draw(event.target.value) },
      drawn.map((one) => h("option", { selected: one.name === name }, one.name)))),
    place,
  ];
}

/** A limit with the name of its row where there are several: `site['north'].power_mw`. */
const named = (limit, asked) => limit.replace(/^(\w+)\[(\d+)\]/, (whole, key, place) => {
  const rows = listed(asked?.[key]), name = rows[place]?.name;
  return rows.length > 1 && name ? `${key}['${name}']` : whole;
});

/** What binds the answer, or what has to give; `apply(changes)` tries a way out of what is asked. */
export function showReasons(root, found, apply) {
  if (!found) return show(root);
  const infeasible = found.status === "infeasible", open = root.querySelector("details")?.open ?? infeasible;
  const ways = found.relaxations.map((one) => h("li", {},
    "Changing ", one.changes.map((change) => `${named(change.limit, found.table)} from ${change.now} to ${change.to}`).join(" and "),
    h("span", { class: "help" }, ` would allow a plan ${tied(one.value)} `),
    h("button", { type: "button", class: "try", click: () => apply(one.changes) }, "Try this")));
  const title = infeasible ? "What would have to change" : "Why this plan, and what would change it";
  return show(root, h("details", { class: "part", open }, h("summary", {}, h("h2", {}, title)),
    ways.length ? h("ul", { class: "ways" }, ways) : "",
    h("ul", { class: "reasons" }, found.sentences.map((one) => h("li", {}, tied(one)))),
    found.tables.map(table)));
}

/** What is wrong with the question, beside its answer: `lead(path)` brings its field into view. */
export function showComplaints(root, complaints, lead) {
  show(root, complaints.map(({ sentence, path }) =>
    h("li", {}, sentence, " ", h("button", { type: "button", class: "try", click: () => lead(path) }, path ? "Show the field" : "Show it in the text"))));
}
