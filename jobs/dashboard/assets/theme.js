// Runs before the page is drawn, so that it does not flash in another theme or without its patterns.
(() => {
  const root = document.documentElement;
  const [dark, forced] = ["(prefers-color-scheme: dark)", "(forced-colors: active)"].map((query) => matchMedia(query));
  const kept = (name) => { try { return localStorage.getItem(name); } catch { return null; /* storage may be forbidden: the browser's setting holds */ } };
  const pattern = () => root.toggleAttribute("data-patterns", Boolean(kept("patterns")) || forced.matches);
  if (/^(dark|light)$/.test(kept("theme"))) root.dataset.theme = kept("theme");
  pattern();
  forced.addEventListener("change", pattern);
  for (const query of [dark, forced]) query.addEventListener("change", () => dispatchEvent(new Event("theme")));
})();
