// Cost against time: the chart of the front between what is said of it.

import { Chart } from "./chart.js";
import { h, byId, show, tied } from "./dom.js";

/** The front of a question in `root`; `move(pace, dragging)` hears where its bound goes. */
export class Front {
  constructor(root, move) {
    Object.assign(this, { root, move, chart: null });
  }

  update(front) {
    this.chart = null;
    if (!front) return show(this.root);
    const [headline, ...others] = front.sentences, several = front.points.length > 1;
    show(this.root, h("details", { class: "part", open: true }, h("summary", {}, h("h2", {}, `${front.kind === "power" ? "Power" : "Cost"} against time`)),
      h("p", { class: "front-headline" }, tied(headline)),
      several ? [h("p", { class: "remark" }, front.bound === null ? "Select a point to see what it builds." : "Drag the line, or select a point, to scale all time bounds by the same factor.",
        front.points.some((one) => one.knee) ? " A ring marks a knee: beyond it, more time saves much less." : "",
        front.band.says ? ` The band runs ${tied(front.band.says)}.` : ""),
      h("div", { id: "chart", class: "chart" }), h("div", { id: "point", class: "point", "aria-live": "polite" })] : "",
      h("details", { class: "more" }, h("summary", {}, "More about this curve"), others.map((one) => h("p", { class: "remark" }, tied(one))))));
    if (several) this.chart = new Chart(byId("chart"), byId("point"), front, this.move);
  }

  /** The bound moved elsewhere, by a slider. */
  place(pace) {
    this.chart?.place(pace);
  }
}
