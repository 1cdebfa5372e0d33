// The planner's page: one question, which the form, the text and the sliders edit alike, and its answer, which follows.

import { h, byId, show, settled, tied } from "./dom.js";
import { Bounds, boundsOf } from "./bounds.js";
import { showComparison } from "./compare.js";
import { Editor } from "./editor.js";
import { QuestionForm } from "./form.js";
import { Chart } from "./front.js";
import { Form } from "./schema.js";
import { save, showLink, textOfAddress, themeSwitch } from "./share.js";
import { showDecision, showEvidence, showReasons } from "./answer.js";
import { answerTo, Lost, Refused, search } from "./stream.js";

const KEPT = "coopt-question", YOUNG_MS = 250, QUIET_MS = 500, QUICK_S = 2;

const question = { text: "", table: null, complaints: [] };
const answer = { text: null, table: null, plan: null, verdict: null, front: null, reasons: null };
let kept = null, starter = "", bounds, editor, form, chart;

// The question: edits go to the server one after the other; those that come meanwhile go together with the next.

const edits = { changes: new Map(), text: null, busy: false };

function change(changes) {
  for (const [path, value] of changes) edits.changes.set(JSON.stringify(path), [path, value]);
  return sendEdits();
}

function put(text) {
  edits.text = text;
  edits.changes.clear();
  return sendEdits();
}

async function sendEdits() {
  if (edits.busy) return;
  edits.busy = true;
  mark();
  let given = null;
  try {
    while (edits.text !== null || edits.changes.size) {
      given = { text: edits.text ?? question.text, changes: [...edits.changes.values()] };
      edits.text = null;
      edits.changes.clear();
      Object.assign(question, JSON.parse(await answerTo("/question", given)));
      sessionStorage.setItem(KEPT, question.text);
      connected();
      showQuestion();
    }
  } catch (error) {
    if (error instanceof Lost) keepEdits(given);
    troubled(error);
  } finally {
    edits.busy = false;
    mark();
  }
}

/** Edits that did not arrive go with the next. */
function keepEdits(given) {
  edits.text ??= given.text;
  edits.changes = new Map([...given.changes.map((one) => [JSON.stringify(one[0]), one]), ...edits.changes]);
}

function showQuestion() {
  const { text, table, complaints } = question;
  if (table) {
    byId("title").textContent = table.name ?? "Question";
    document.title = `${table.name ?? "Question"}: coopt planner`;
    bounds.update(table, complaints);
    form.update(table, complaints);
  }
  editor.update(text, complaints);
  show(byId("complaints"), complaints.map((one) => h("li", {}, one.sentence.replace(/^question: /, ""))));
  chart.place(paceOf());
  if (complaints.length) {
    stop();
    stale("The question cannot be used as it is; below is the answer to the last one that could.");
  } else if (running.search?.text !== text && (text !== answer.text || !answer.verdict)) {
    seek();
  } else if (!running.search) {
    showAnswer();
    busy("");
    followUp();
  }
}

// The answer: a search that is replaced is aborted, unless it is so young that it may end by itself.

const running = { search: null };

/** Say whether the answer is still being sought. */
function mark() {
  const sought = edits.busy || running.search || retry.pending || followUp.pending || extras.controls.size > 0;
  byId("answer").setAttribute("aria-busy", String(Boolean(sought)));
}

function stop() {
  retry.stop();
  running.search?.control.abort();
  running.search = null;
  followUp.stop();
  extras.abort();
}

function seek() {
  const young = running.search && !running.search.found ? YOUNG_MS - (performance.now() - running.search.since) : 0;
  stale();
  if (young > 0) retry();
  else if (question.complaints.length === 0) find();
}

const retry = settled(YOUNG_MS, seek);

async function find() {
  stop();
  const mine = { control: new AbortController(), since: performance.now(), text: question.text, table: question.table };
  running.search = mine;
  mark();
  stale();
  busy("Searching.");
  const hear = {
    progress: (step) => busy(`Searching: ${step.line}`),
    plan: (plan) => {
      Object.assign(answer, { plan, verdict: null, text: mine.text, table: mine.table, took_ms: performance.now() - mine.since });
      mine.found = true;
      showAnswer();
      busy("The verifier is looking at the plan.");
    },
    verdict: (verdict) => {
      if (answer.text !== mine.text) return;
      answer.verdict = verdict;
      showAnswer();
    },
    refused: ({ complaints }) => { question.complaints = complaints; showQuestion(); },
    failed: ({ sentence }) => trouble(sentence),
  };
  try {
    await search("/plan", { text: mine.text }, hear, mine.control.signal);
    if (question.text === mine.text && answer.text === mine.text && !question.complaints.length) {
      busy("");
      followUp();
    }
  } catch (error) {
    troubled(error);
  } finally {
    if (running.search === mine) running.search = null;
    mark();
  }
}

/** Once nothing moves: the front, and what has to give, where they are quick; otherwise a button asks for them. */
const followUp = settled(QUIET_MS, () => {
  const quick = answer.plan.total_s < QUICK_S, infeasible = answer.plan.status === "infeasible";
  if ((quick || infeasible) && answer.reasons?.of !== answer.text) extra("explanation");
  if (quick && answer.front?.of !== answer.text) extra("front");
  showOffers(!quick);
  mark();
});

const extras = {
  controls: new Map(),
  abort() {
    for (const one of this.controls.values()) one.abort();
    this.controls.clear();
  },
};

async function extra(name) {
  const text = answer.text, control = new AbortController();
  extras.controls.set(name, control);
  mark();
  const take = (found) => {
    answer[name === "front" ? "front" : "reasons"] = { bounds: boundsOf(answer.table), ...found, of: text };
    if (name === "front") showFront();
    else showWhy();
  };
  const refuse = (text) => take({ refused: text, bounds: [] });
  const told = name === "front" ? "Tracing cost against time" : "Looking for what would change the plan";
  const hear = {
    [name]: take,
    progress: (step) => busy(`${told}: ${step.line}`),
    refused: ({ complaints }) => refuse(complaints.map((one) => one.sentence).join(" ")),
    failed: ({ sentence }) => { refuse(sentence); trouble(sentence); },
  };
  try {
    if (control.signal.aborted) return;
    busy(`${told}.`);
    await search(`/${name}`, { text, plan: answer.plan.plan }, hear, control.signal);
    if (question.text === text) busy("");
  } catch (error) {
    troubled(error);
  } finally {
    if (extras.controls.get(name) === control) extras.controls.delete(name);
    mark();
  }
}

function showAnswer() {
  const fresh = answer.text === question.text && !question.complaints.length;
  byId("answer").classList.toggle("stale", !fresh);
  connected();
  showDecision(byId("decision"), answer.plan, answer.verdict, change);
  showEvidence(byId("evidence"), answer.plan, answer.verdict);
  showComparison(byId("comparison"), kept, answer, { swap, end: () => keep(null) });
  markExtras();
}

function showFront() {
  const { refused } = answer.front;
  chart.update(refused ? null : answer.front);
  if (refused) show(byId("front"), h("p", { class: "help" }, `Cost against time: ${refused}`));
  chart.place(paceOf());
  markExtras();
}

function showWhy() {
  const { refused, status } = answer.reasons, infeasible = status === "infeasible", apply = (changes) => change(changes.map((one) => [pathOf(one.limit), valueOf(one.to)]));
  showReasons(byId("reasons"), infeasible ? answer.reasons : null, apply);
  showReasons(byId("why"), infeasible || refused ? null : answer.reasons, apply);
  if (refused) show(byId("why"), h("p", { class: "help" }, `Why this plan: ${refused}`));
  markExtras();
}

/** What belongs to another question than the one asked now is grey. */
function markExtras() {
  byId("front").classList.toggle("stale", answer.front?.of !== question.text);
  for (const id of ["reasons", "why"]) byId(id).classList.toggle("stale", answer.reasons?.of !== question.text);
}

function showOffers(offered) {
  byId("offers")?.remove();
  if (!offered) return;
  const ask = (name) => (event) => { event.target.disabled = true; extra(name); };
  byId("reasons").before(h("p", { id: "offers", class: "row offers" }, h("span", { class: "help" }, "These take longer than the answer:"),
    h("button", { type: "button", id: "ask-front", click: ask("front") }, "Cost against time"),
    h("button", { type: "button", id: "ask-explanation", click: ask("explanation") }, "Why this plan, and what would change it")));
}

// Bounds: a slider moves one; the front moves all, from where they were when it was traced.

function paceOf() {
  const now = boundsOf(question.table).filter((one) => one.paced), front = answer.front;
  if (!front || !now.length) return 1;
  const before = front.bounds.find((one) => one.path.join() === now[0].path.join());
  if (!before) return 1;
  return now[0].path.at(-1) === "min_tokens_per_s" ? before.value / now[0].value : now[0].value / before.value;
}

function moveBounds(pace) {
  change(answer.front.bounds.filter((one) => one.paced).map((one) =>
    [one.path, reached(one.path.at(-1) === "min_tokens_per_s" ? one.value / pace : one.value * pace, one.path.at(-1))]));
}

/** A bound with six digits that is no tighter than it has to be. */
function reached(value, key) {
  const digits = Number(value.toPrecision(6)), step = 10 ** (Math.floor(Math.log10(value)) - 5);
  const tight = key === "min_tokens_per_s" ? digits > value : digits < value;
  return tight ? Number((digits + (key === "min_tokens_per_s" ? -step : step)).toPrecision(6)) : digits;
}

const pathOf = (limit) => [...limit.matchAll(/(\w+)|\[(\d+)\]/g)].map(([, key, place]) => (place === undefined ? key : Number(place)));

function valueOf(text) {
  const number = Number(text.replaceAll(",", ""));
  if (text.trim() !== "" && Number.isFinite(number)) return number;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// What is said: progress, answers that are no longer those of the question, and a server that does not answer.

const busy = (text) => { byId("progress").textContent = tied(text); byId("progress").classList.toggle("busy", text !== ""); };

function stale(text) {
  if (answer.plan) byId("answer").classList.add("stale");
  markExtras();
  if (text) busy(answer.plan ? text : "The question cannot be used as it is.");
  byId("progress").classList.toggle("busy", !text);
}

function trouble(text) {
  byId("lost").hidden = false;
  byId("lost").firstElementChild.textContent = text;
  busy("");
  if (answer.plan && answer.text !== question.text) byId("answer").classList.add("stale");
}

const connected = () => { byId("lost").hidden = true; };

function troubled(error) {
  if (error.name === "AbortError") return;
  if (!(error instanceof Lost || error instanceof Refused)) throw error;
  trouble(error.message);
}

// Comparing, and files.

function keep(one) {
  kept = one;
  byId("compare").setAttribute("aria-pressed", String(kept !== null));
  showComparison(byId("comparison"), kept, answer, { swap, end: () => keep(null) });
  if (kept) byId("comparison").scrollIntoView({ block: "nearest" });
}

function swap() {
  const other = kept;
  keep({ ...answer });
  put(other.text);
}

const fileName = (ending) => `${(question.table?.name ?? "question").replace(/[^\w.-]+/g, "-")}.${ending}`;

async function saveReport(event) {
  if (!answer.plan) return;
  event.target.disabled = true;
  busy("Writing the report.");
  try {
    const page = JSON.parse(await answerTo("/report", { text: answer.text, plan: answer.plan.plan }));
    save(fileName("html"), page, "text/html");
    busy("");
  } catch (error) {
    troubled(error);
  } finally {
    event.target.disabled = false;
  }
}

function chooseTab(name) {
  for (const one of ["form", "text"]) {
    const tab = byId(`tab-${one}`), on = one === name;
    tab.setAttribute("aria-selected", String(on));
    tab.tabIndex = on ? 0 : -1;
    byId(one).hidden = !on;
  }
  editor.number();
}

/** On a narrow screen the question and the answer take turns; bounds stay. */
function seePart(name) {
  document.body.classList.toggle("asks", name === "question");
  for (const one of ["question", "answer"]) byId(`see-${one}`).setAttribute("aria-pressed", String(one === name));
  scrollTo(0, 0);
}

function listen() {
  const on = (id, action) => byId(id).addEventListener("click", (event) => { byId("files").open = false; action(event); });
  on("compare", () => keep(kept || !answer.plan ? null : { ...answer }));
  on("share", () => showLink(question.text));
  on("open", () => byId("file").click());
  on("new", () => put(starter));
  on("save-question", () => save(fileName("toml"), question.text, "application/toml"));
  on("save-plan", () => answer.plan && save(fileName("plan.json"), JSON.stringify(answer.plan.plan, null, 2), "application/json"));
  on("save-bill", () => answer.plan?.bill_csv && save(fileName("csv"), answer.plan.bill_csv, "text/csv"));
  on("save-report", saveReport);
  on("again", () => { connected(); edits.text ??= question.text; sendEdits(); });
  for (const name of ["question", "answer"]) on(`see-${name}`, () => seePart(name));
  for (const name of ["form", "text"]) {
    on(`tab-${name}`, () => chooseTab(name));
    byId(`tab-${name}`).addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      const other = name === "form" ? "text" : "form";
      chooseTab(other);
      byId(`tab-${other}`).focus();
    });
  }
  byId("file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (file) put(await file.text());
    event.target.value = "";
  });
  themeSwitch(byId("theme"));
}

async function begin() {
  listen();
  const start = await (await fetch("/start")).json();
  const names = new Form(start.schema, start.catalog);
  starter = start.starter;
  bounds = new Bounds(byId("bounds"), (path, value) => change([[path, value]]));
  form = new QuestionForm(byId("form"), names, change);
  editor = new Editor(byId("text"), names, settled(250, put));
  chart = new Chart(byId("front"), (pace) => moveBounds(pace));
  await put((await textOfAddress()) ?? sessionStorage.getItem(KEPT) ?? start.text);
}

begin();
