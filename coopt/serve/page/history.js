// What was asked before: steps to take back, and the last answers to compare with.

import { h, byId, show } from "./dom.js";

const MOST_STEPS = 100, MOST_ANSWERS = 12;

/** The steps of a question; `put(text)` asks an earlier text again, `compare(answer)` sets an earlier answer beside this one. */
export class Past {
  constructor(put, compare) {
    Object.assign(this, { put, compare, steps: [], answers: [], dragged: false, back: null });
    byId("undo").addEventListener("click", () => this.undo());
    document.addEventListener("keydown", (event) => {
      if (event.key.toLowerCase() !== "z" || !(event.ctrlKey || event.metaKey) || event.shiftKey) return;
      if (event.target.closest?.("input[type=text], textarea")) return;
      event.preventDefault();
      this.undo();
    });
    this.list();
  }

  /** A question took the place of another; all that changes while one drags is one step. */
  edited(before, now, dragging) {
    const isNew = before && before !== now && this.back !== now;
    if (isNew && !(dragging && this.dragged)) this.steps = [...this.steps, before].slice(-MOST_STEPS);
    this.back = null;
    this.dragged = dragging;
    byId("undo").disabled = this.steps.length === 0;
  }

  undo() {
    if (!this.steps.length) return;
    this.back = this.steps.pop();
    this.put(this.back);
  }

  /** The plan of a question was found; the last one of a text stands first. */
  answered(answer) {
    this.answers = [answer, ...this.answers.filter((one) => one.text !== answer.text)].slice(0, MOST_ANSWERS);
    this.list();
  }

  list() {
    const rows = this.answers.map((one) => h("button", { type: "button", click: () => { byId("history").open = false; this.compare(one); } },
      h("strong", {}, one.plan.name), ` ${summaryOf(one.plan)}`));
    show(byId("answers"), rows.length ? rows : h("p", { class: "help" }, "Earlier answers appear here."));
  }
}

/** What tells a plan from others: its purchase, times and GPUs, or that there is none. */
function summaryOf(plan) {
  const of = (...units) => plan.figures.filter((one) => units.includes(one.unit)).slice(0, 2).map((one) => one.value);
  return [...of("USD").slice(0, 1), ...of("s", "days"), ...of("GPUs").map((gpus) => `${gpus} GPUs`)].join(", ") || plan.headline;
}
