// Runs before the page is drawn, so that it does not flash in another theme or without its patterns.
(() => {
  const root = document.documentElement;
  const kept = (name) => { try { return localStorage.getItem(name); } catch { return null; /* storage may be forbidden: the browser's setting holds */ } };
  if (/^(dark|light)$/.test(kept("theme"))) root.dataset.theme = kept("theme");
  if (kept("patterns") || matchMedia("(forced-colors: active)").matches) root.dataset.patterns = "";
})();
