for (const chart of document.querySelectorAll(".front-chart:not([data-drawn])")) {
  chart.dataset.drawn = "yes";
  const data = JSON.parse(chart.querySelector(".front-data").textContent);
  const [plot, select, list] = ["plot", "select", "details"].map((name) => chart.querySelector(`.front-${name}`));
  const ring = {
    type: "scatter", mode: "markers", x: [], y: [], hoverinfo: "skip", showlegend: false,
    marker: { size: 18, color: "rgba(0,0,0,0)", line: { color: "#1b2430", width: 2.5 } },
  };
  const show = (place) => {
    select.value = place;
    list.replaceChildren(...data.details[place].flatMap(([name, said]) => {
      const [term, text] = ["dt", "dd"].map((tag) => document.createElement(tag));
      term.textContent = name;
      text.textContent = said;
      return [term, text];
    }));
    const every = data.traces[0];
    Plotly.restyle(plot, { x: [[every.x[place]]], y: [[every.y[place]]] }, [data.traces.length]);
  };
  Plotly.newPlot(plot, [...data.traces, ring], data.layout, { responsive: true, displayModeBar: false }).then(() => {
    document.getElementById("js-plotly-tester").setAttribute("aria-hidden", "true"); // plotly measures text with it
    plot.on("plotly_click", (event) => show(event.points[0].customdata));
    select.addEventListener("change", () => show(Number(select.value)));
    if (data.details.length) show(data.start);
  });
}
