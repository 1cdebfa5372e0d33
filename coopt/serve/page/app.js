// The planner's page: one question, which the form, the text and the sliders edit alike, and its answer, which follows.

import { h, byId, show, settled } from "./dom.js";
import { apartFromBounds, Bounds, boundsOf, paced, paceOf } from "./bounds.js";
import { showComparison } from "./compare.js";
import { Editor } from "./editor.js";
import { QuestionForm, showField } from "./form.js";
import { Front } from "./front.js";
import { Form, pathOf, valueOf } from "./schema.js";
import { keepInTab, onLink, save, showLink, textOfAddress, textOfTab } from "./share.js";
import { showComplaints, showDecision, showEvidence, showReasons } from "./answer.js";
import { answerTo, Lost, Refused, search, tell, waits } from "./stream.js";
import { Past } from "./history.js";
import { showViews } from "./views.js";

const YOUNG_MS = 250, QUIET_MS = 500, QUICK_S = 2;

const question = { text: "", table: null, complaints: [] };
const NOTHING = { text: null, table: null, plan: null, verdict: null, front: null, reasons: null };
const answer = { ...NOTHING };
let kept = null, starter = "", saved = "", bounds, editor, form, front, past;

// The question: edits go to the server one after the other; those that come meanwhile go together with the next.

const edits = { changes: new Map(), text: null, busy: false, dragging: false };

function change(changes, dragging = false) {
  edits.dragging = dragging;
  for (const [path, value] of changes) edits.changes.set(JSON.stringify(path), [path, value]);
  return sendEdits();
}

/** Put another question in place of this one, whose text is on file. */
function open(text) {
  saved = text;
  return put(text);
}

function put(text) {
  edits.text = text;
  edits.dragging = false;
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
      const whole = edits.text !== null;
      edits.text = null;
      edits.changes.clear();
      hold(JSON.parse(await answerTo("/question", given)));
      if (whole && question.table && question.table.name !== answer.table?.name) forget();
      keepInTab(question.text);
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

function hold({ text, table, complaints }) {
  past.edited(question.text, text, edits.dragging);
  Object.assign(question, { text, table });
  refuse(complaints);
}

function refuse(complaints) {
  question.complaints = complaints.map((one) => ({ ...one, sentence: one.sentence.replace(/^question: /, "") }));
}

/** Another question is open: nothing of the former one may stand under its name. */
function forget() {
  stop();
  Object.assign(answer, NOTHING);
  bounds.forget();
  front.update(null);
  for (const id of ["comparison", "decision", "reasons", "why", "evidence"]) show(byId(id));
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
  show(byId("complaints"), complaints.map((one) => h("li", {}, one.sentence)));
  showComplaints(byId("wrong"), complaints, showField);
  front.place(paceOf(answer.front, table));
  if (complaints.length) {
    stop();
    tell("question", `The question has errors${answer.plan ? "; the answer below is to an earlier question" : ""}.`);
  } else if (running.search?.text !== text && (text !== answer.text || !answer.verdict)) {
    seek();
  } else if (!running.search) {
    running.stopped = false;
    tell("question");
    showAnswer();
    followUp();
  }
  mark();
}

// The answer: a search that is replaced is aborted, unless it is so young that it may end by itself.

const running = { search: null, stopped: false };

/** Show whether the answer is still being sought, and grey what does not belong to the question that is asked now. */
function mark() {
  const sought = edits.busy || running.search || retry.pending || followUp.pending || extras.size > 0;
  byId("answer").setAttribute("aria-busy", String(Boolean(sought)));
  const fresh = answer.text === question.text && !question.complaints.length;
  byId("answer").classList.toggle("stale", answer.plan !== null && !fresh);
  byId("decision").inert = !fresh;
  byId("front").classList.toggle("stale", isStale("front"));
  byId("front").inert = !isLive();
  for (const id of ["reasons", "why"]) byId(id).inert = byId(id).classList.toggle("stale", isStale("explanation"));
  showOffers(!sought);
}

const found = (name) => (name === "front" ? answer.front : answer.reasons);
const isStale = (name) => found(name) !== null && found(name).of !== question.text;

/** Whether the front is that of the question, wherever its bounds are. */
const isLive = () => answer.front !== null && apartFromBounds(answer.front.table) === apartFromBounds(question.table);

function stop() {
  retry.stop();
  running.search?.control.abort();
  running.search = null;
  followUp.stop();
  for (const [name, control] of extras) {
    control.abort();
    tell(name);
  }
  extras.clear();
  tell("search");
  tell("question");
}

/** The planner wants no more of what is being sought. */
function cancel() {
  if (byId("answer").ariaBusy !== "true") return;
  running.stopped = Boolean(running.search || retry.pending);
  stop();
  const below = !answer.plan || (answer.text === question.text && answer.verdict) ? ""
    : answer.text === question.text ? "; the answer below is not verified" : "; the answer below is to an earlier question";
  if (running.stopped) tell("question", `The search was stopped${below}.`);
  showSought();
  mark();
}

function seek() {
  const young = running.search && !running.search.found ? YOUNG_MS - (performance.now() - running.search.since) : 0;
  if (young > 0) retry();
  else if (question.complaints.length === 0) find();
}

const retry = settled(YOUNG_MS, seek);

async function find() {
  stop();
  const mine = { control: new AbortController(), since: performance.now(), text: question.text, table: question.table };
  Object.assign(running, { search: mine, stopped: false });
  tell("search", "Searching.");
  mark();
  const hear = {
    ...waits("search", "Searching"),
    plan: (plan) => {
      Object.assign(answer, { plan, verdict: null, text: mine.text, table: mine.table });
      mine.found = true;
      showAnswer();
      if (plan.status !== "unknown") tell("search", "Verifying the answer.");
    },
    verdict: (verdict) => {
      if (answer.text !== mine.text) return;
      answer.verdict = verdict;
      past.answered({ ...answer });
      showAnswer();
    },
    refused: ({ complaints }) => { refuse(complaints); showQuestion(); },
    failed: ({ sentence }) => trouble(sentence),
  };
  try {
    await search("/plan", { text: mine.text }, hear, mine.control.signal);
    if (question.text === mine.text && answer.text === mine.text && !question.complaints.length) followUp();
  } catch (error) {
    troubled(error);
  } finally {
    if (running.search === mine) {
      running.search = null;
      tell("search");
    }
    mark();
  }
}

/** Once nothing moves: the front, and what has to give, where they are quick; otherwise a button asks for them. */
const followUp = settled(QUIET_MS, () => {
  const { status, total_s } = answer.plan, quick = total_s < QUICK_S, known = status !== "unknown";
  if (known && (quick || status === "infeasible") && answer.reasons?.of !== answer.text) extra("explanation");
  if (quick && answer.front?.of !== answer.text) extra("front");
  showSought();
  mark();
});

/** What is sought beside the plan: its controls by name, and how it is called. */
const extras = new Map();
const REASONS = ["Why this plan, and what would change it", "Looking for what would change the plan",
  "What each bound costs, and what would change the plan, is still being computed."];
const CHANGES = ["What would have to change", "Looking for changes that allow a plan", "The changes that would allow a plan are still being computed."];
const frontName = () => `${answer.plan?.plan?.objective.kind === "power" ? "Power" : "Cost"} against time`;
const wordsOf = (name) => name === "front" ? [frontName(), "Tracing the curve", "The curve is still being computed."]
  : answer.plan?.status === "infeasible" ? CHANGES : REASONS;

async function extra(name) {
  const { text, table } = answer, control = new AbortController(), [, told] = wordsOf(name);
  extras.set(name, control);
  tell(name, `${told}.`);
  showSought();
  mark();
  const take = (given) => {
    if (answer.text !== text) return;
    answer[name === "front" ? "front" : "reasons"] = { bounds: boundsOf(table), ...given, table, of: text };
    if (name === "front") showFront();
    else showWhy();
    mark();
  };
  const hear = {
    ...waits(name, told),
    [name]: take,
    refused: ({ complaints }) => take({ refused: complaints.map((one) => one.sentence).join(" "), bounds: [] }),
    failed: ({ sentence }) => trouble(sentence),
  };
  try {
    await search(`/${name}`, { text, plan: answer.plan.plan }, hear, control.signal);
  } catch (error) {
    troubled(error);
  } finally {
    if (extras.get(name) === control) {
      extras.delete(name);
      tell(name);
    }
    showSought();
    mark();
  }
}

function showAnswer() {
  connected();
  showDecision(byId("decision"), answer.plan, answer.verdict, change);
  showEvidence(byId("evidence"), answer.plan, answer.verdict);
  showComparison(byId("comparison"), kept, answer, { swap, end: () => keep(null) });
  mark();
}

function showFront() {
  const { refused } = answer.front;
  front.update(refused ? null : answer.front);
  if (refused) show(byId("front"), h("p", { class: "help" }, `${frontName()}: ${refused}`));
  front.place(paceOf(answer.front, question.table));
}

function showWhy() {
  const { refused, status } = answer.reasons, infeasible = status === "infeasible", apply = (changes) => change(changes.map((one) => [pathOf(one.limit), valueOf(one.to)]));
  showReasons(byId("reasons"), infeasible ? answer.reasons : null, apply);
  showReasons(byId("why"), infeasible || refused ? null : answer.reasons, apply);
  if (refused) show(byId("why"), h("p", { class: "help" }, `Why this plan: ${refused}`));
}

/** Beside a plan stands what is known of it; what is not sought goes away with its plan, what is sought for the first time says so. */
function showSought() {
  const infeasible = answer.plan?.status === "infeasible", told = answer.reasons, fresh = answer.text === question.text;
  const otherwise = told && (told.status === "infeasible") !== infeasible;
  if (fresh && told?.of !== answer.text && (otherwise || !extras.has("explanation"))) answer.reasons = null;
  if (fresh && !isLive() && !extras.has("front")) answer.front = null;
  const pending = (name) => extras.has(name) && h("section", { class: "part pending" }, h("h2", {}, wordsOf(name)[0]), h("p", { class: "remark" }, wordsOf(name)[2]));
  if (!answer.front) {
    front.update(null);
    show(byId("front"), pending("front"));
  }
  if (answer.reasons) return;
  show(byId("reasons"), infeasible && pending("explanation"));
  show(byId("why"), !infeasible && pending("explanation"));
}

/** Buttons for what was not sought by itself. */
function showOffers(offered) {
  const fresh = answer.text === question.text && answer.verdict !== null;
  const names = offered && fresh ? ["front", "explanation"].filter((one) => found(one)?.of !== answer.text) : [];
  const again = offered && running.stopped && !question.complaints.length;
  const button = (id, text, action) => h("button", { type: "button", id, click: action }, text);
  show(byId("offers"), again ? button("ask-plan", "Search again", find)
    : names.length ? [h("span", { class: "help" }, "Not computed yet:"), names.map((name) => button(`ask-${name}`, wordsOf(name)[0], () => extra(name)))] : "");
}

// Bounds: a slider moves one; the front moves all, from where they were when it was traced.

function moveBounds(pace, dragging) {
  if (isLive()) change(paced(answer.front, pace), dragging);
}

// A server that does not answer.

function trouble(text) {
  byId("lost").hidden = false;
  byId("lost").firstElementChild.textContent = text;
  mark();
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

const fileName = (of, ending) => `${(of.table?.name ?? "question").replace(/[^\w.-]+/g, "-")}.${ending}`;

async function saveReport(event) {
  if (!answer.plan) return;
  event.target.disabled = true;
  tell("report", "Writing the report.");
  const name = fileName(answer, "html");
  try {
    save(name, JSON.parse(await answerTo("/report", { text: answer.text, plan: answer.plan.plan })), "text/html");
  } catch (error) {
    troubled(error);
  } finally {
    event.target.disabled = false;
    tell("report");
  }
}

function listen() {
  const on = (id, action) => byId(id).addEventListener("click", (event) => { byId("files").open = false; action(event); });
  on("compare", () => keep(kept || !answer.plan ? null : { ...answer }));
  on("share", () => showLink(question.text));
  const leaves = () => question.text === saved || confirm("Leave this question? It is not saved as it stands.");
  onLink((text) => leaves() && put(text));
  on("open", () => leaves() && byId("file").click());
  on("new", () => leaves() && open(starter));
  on("save-question", () => { saved = question.text; save(fileName(question, "toml"), saved, "application/toml"); });
  on("save-plan", () => answer.plan && save(fileName(answer, "plan.json"), JSON.stringify(answer.plan.plan, null, 2), "application/json"));
  on("save-bill", () => answer.plan?.bill_csv && save(fileName(answer, "csv"), answer.plan.bill_csv, "text/csv"));
  on("save-report", saveReport);
  on("again", () => { connected(); edits.text ??= question.text; sendEdits(); });
  byId("file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (file) open(await file.text());
    event.target.value = "";
  });
  on("stop", cancel);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !event.defaultPrevented && !byId("link").open) cancel(); });
  byId("tab-text").addEventListener("click", () => editor.number());
  showViews();
}

async function begin() {
  listen();
  const start = await (await fetch("/start")).json();
  const names = new Form(start.schema, start.catalog);
  starter = start.starter;
  saved = start.text;
  bounds = new Bounds(byId("bounds"), names, (path, value, dragging) => change([[path, value]], dragging));
  form = new QuestionForm(byId("form"), names, change);
  editor = new Editor(byId("text"), names, settled(250, put));
  past = new Past(put, keep);
  front = new Front(byId("front"), moveBounds);
  await put((await textOfAddress()) ?? textOfTab(start.text));
}

begin();
