// What of the page is seen: the form or the text, the question or the answer, a menu, and in which colours.

import { byId } from "./dom.js";

/** Let buttons, tabs and keys choose what is seen. */
export function showViews() {
  for (const name of ["question", "answer"]) byId(`see-${name}`).addEventListener("click", () => seePart(name));
  for (const name of ["form", "text"]) {
    byId(`tab-${name}`).addEventListener("click", () => chooseTab(name));
    byId(`tab-${name}`).addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      const other = byId(`tab-${name === "form" ? "text" : "form"}`);
      other.click();
      other.focus();
    });
  }
  for (const name of ["files", "history"]) menu(byId(name));
  themeSwitch(byId("theme"));
}

function chooseTab(name) {
  for (const one of ["form", "text"]) {
    const tab = byId(`tab-${one}`), on = one === name;
    tab.setAttribute("aria-selected", String(on));
    tab.tabIndex = on ? 0 : -1;
    byId(one).hidden = !on;
  }
}

/** On a narrow screen the question and the answer take turns; bounds stay. */
function seePart(name) {
  document.body.classList.toggle("asks", name === "question");
  for (const one of ["question", "answer"]) byId(`see-${one}`).setAttribute("aria-pressed", String(one === name));
  scrollTo(0, 0);
}

/** A menu that arrows walk through, and that Escape or a click elsewhere closes. */
function menu(details) {
  const title = details.querySelector("summary");
  document.addEventListener("click", (event) => { if (!details.contains(event.target)) details.open = false; });
  details.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && details.open) {
      details.open = false;
      title.focus();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      details.open = true;
      const entries = [...details.querySelectorAll("button")];
      const place = entries.indexOf(document.activeElement), by = event.key === "ArrowDown" ? 1 : place < 0 ? 0 : -1;
      entries.at((place + by) % entries.length)?.focus();
    } else return;
    event.preventDefault();
  });
}

const THEMES = { auto: ["Auto", "Auto: the colours of your system"], light: ["Light", "Light colours"], dark: ["Dark", "Dark colours"] };

/** The switch between the colours of the system, light and dark. */
function themeSwitch(button) {
  const put = (name) => {
    if (name === "auto") {
      delete document.documentElement.dataset.theme;
      localStorage.removeItem("coopt-theme");
    } else {
      document.documentElement.dataset.theme = name;
      localStorage.setItem("coopt-theme", name);
    }
    button.textContent = THEMES[name][0];
    button.setAttribute("aria-label", THEMES[name][1]);
  };
  const now = () => document.documentElement.dataset.theme ?? "auto";
  const names = Object.keys(THEMES);
  button.addEventListener("click", () => put(names[(names.indexOf(now()) + 1) % names.length]));
  put(now());
}
