// Runs before anything is drawn, so that the page never flashes in the other colours.
(() => {
  const kept = localStorage.getItem("coopt-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
