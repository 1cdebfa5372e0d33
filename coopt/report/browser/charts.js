// Every front of a page that is a file.

import { Chart } from "./chart.js";

for (const one of document.querySelectorAll(".front-chart")) {
  const [place, said, data] = one.children;
  new Chart(place, said, JSON.parse(data.textContent));
}
