// What a page can do once it is open: sections fold, tables sort and are copied. Without it everything is there to read.
const element = (name, look, text) => Object.assign(document.createElement(name), { className: look, textContent: text });

for (const heading of document.querySelectorAll("main > section > h2")) {
  const section = heading.parentElement, fold = element("button", "fold", heading.textContent);
  const set = (open) => { fold.setAttribute("aria-expanded", open); section.classList.toggle("folded", !open); };
  fold.addEventListener("click", () => set(section.classList.contains("folded")));
  heading.replaceChildren(fold);
  set(true);
  for (const link of document.querySelectorAll(`a[href="#${section.id}"]`)) link.addEventListener("click", () => set(true));
}

/** The number that a text begins with, in the unit of its column; what is no number comes last. */
function numberOf(text) {
  const found = /-?[\d,]*\.?\d+(?:e[+-]?\d+)?/i.exec(text);
  if (!found) return -Infinity;
  const scale = { ms: 1e-3, us: 1e-6, k: 1e3, kW: 1e3, M: 1e6, MW: 1e6, B: 1e9 };
  const unit = /^\s*([a-zA-Z]+)/.exec(text.slice(found.index + found[0].length))?.[1];
  return Number(found[0].replaceAll(",", "")) * (scale[unit] ?? 1);
}

for (const table of document.querySelectorAll("main .scroll > table, .top .scroll > table")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0], title = table.caption.textContent.trim();
  const isWide = heads.length > 3 || table.matches(".sources") || [...body.rows].some((row) => [...row.cells].some((cell) => cell.textContent.length > 60));
  table.classList.toggle("cards", isWide); // rows are cards on a narrow screen
  for (const row of table.rows) [...row.cells].forEach((cell, column) => { if (cell.tagName === "TD") cell.dataset.name = heads[column].textContent.trim(); });
  heads.forEach((head, column) => {
    const sort = element("button", "sort", head.textContent.trim());
    head.replaceChildren(sort);
    sort.addEventListener("click", () => {
      const numeric = head.classList.contains("number"), before = head.getAttribute("aria-sort");
      const falling = before ? before === "ascending" : numeric, text = (row) => row.cells[column].textContent;
      const order = numeric ? (a, b) => numberOf(text(a)) - numberOf(text(b)) : (a, b) => text(a).localeCompare(text(b));
      body.append(...[...body.rows].sort((a, b) => (falling ? -order(a, b) : order(a, b))));
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
    });
  });
  const copy = element("button", "copy", "Copy");
  copy.setAttribute("aria-label", `Copy the table: ${title}`);
  copy.addEventListener("click", async () => {
    const lines = [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()).join("\t"));
    const place = element("textarea", "copied", lines.join("\n")); // the clipboard of scripts is closed to files
    table.parentElement.append(place);
    place.select();
    copy.textContent = document.execCommand("copy") ? "Copied" : "Not copied";
    place.remove();
    copy.focus();
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  });
  table.parentElement.before(copy);
}

addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
