"use strict";
// All content is there without this: it filters, opens what a link leads to, and opens everything for print.
const tools = document.querySelector(".tools");
const open = () => {
  const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  for (let node = target; node; node = node.parentElement) {
    if (node.tagName === "DETAILS") node.open = true;
  }
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", open);
open();
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
if (tools) {
  tools.hidden = false;
  const field = document.getElementById("filter");
  const found = document.getElementById("found");
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const severities = new Set([...document.querySelectorAll(".severity:checked")].map((box) => box.value).concat("none"));
    for (const row of document.querySelectorAll(".row")) {
      const text = row.textContent.toLowerCase();
      row.hidden = !(severities.has(row.dataset.severity) && words.every((word) => text.includes(word)));
    }
    for (const lane of document.querySelectorAll(".overview .lane:not(.axis)")) {
      lane.hidden = !words.every((word) => lane.textContent.toLowerCase().includes(word));
    }
    const all = document.querySelectorAll("article.row");
    if (words.length && document.getElementById("all")) document.getElementById("all").open = true;
    const left = [...all].filter((row) => !row.hidden).length;
    found.textContent = left < all.length ? `${left} of ${all.length} incidents` : "";
  };
  field.addEventListener("input", filter);
  document.querySelectorAll(".severity").forEach((box) => box.addEventListener("change", filter));
  addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== field) { event.preventDefault(); field.focus(); }
    if (event.key === "Escape" && document.activeElement === field) { field.value = ""; filter(); }
  });
}
