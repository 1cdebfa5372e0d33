// Names for what the theme leaves without one, and the keyboard for what scrolls.
const SCROLLING = ":is(pre > code, math[display=block], .md-typeset__scrollwrap):not([tabindex])";
function tend() {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((nav) =>
    nav.setAttribute("aria-label", `Code ${nav.closest("pre").id.match(/\d+/)}`));
  [...document.querySelectorAll(SCROLLING)].filter((one) => one.scrollWidth > one.clientWidth).forEach((one) =>
    one.setAttribute("tabindex", "0"));
}
new MutationObserver(tend).observe(document.documentElement, { childList: true, subtree: true });
addEventListener("resize", tend);
addEventListener("load", tend);
