// A log line as evidence: the fields that matter in it are marked, and the rest of a long line is folded.
import { fetchJson, Problem } from "./api.js";
import { h, printable, put } from "./dom.js";

const LONG = 240; // characters
const BEGIN = 25; // of a long line: its time
const FIELDS = String.raw`\(reason: (?:[^()]|\([^)]*\))*\)|"reason":"[^"]*"|"?[Gg]eneration(?:Id)?"?[ :=]+-?\d+|"?(?:member|group)?[Ee]poch"?[ :=]+-?\d+|"errorCode":-?[1-9]\d*|"requestApiKeyName":"\w+"|\b[A-Z]\w*Exception\b|\b(?:ERROR|FATAL)\b`;

/** lines: of /api/evidence; names: of the group, its members and clients, as they are in the tables. */
const evidenceLines = (lines, names) => lines.map((line) => [
  h("p", { class: "place" }, `${line.source} ${line.place}`, line.file && !line.place.includes(line.file) ? ` (now in ${line.file})` : ""),
  line.text === null ? h("p", { class: "note" }, "Not found: the file is gone or has changed.") : marked(line.text, names),
]);

function marked(text, names) {
  const known = [...new Set(names)].filter(Boolean).map((name) => printable(name, 2000)).sort((a, b) => b.length - a.length);
  const ofNames = known.map((name) => `(?<![\\w-])${name.replace(/[^\w\s]/g, "\\$&")}(?![\\w-])`);
  const parts = text.split(new RegExp(`(${[...ofNames, FIELDS].join("|")})`));
  const whole = h("pre", { class: "line", tabindex: "0" }, parts.map((part, index) => (index % 2 ? h("mark", {}, part) : part)));
  if (text.length <= LONG) return whole;
  const fields = [...new Set(parts.filter((_, index) => index % 2))].map((part) => [" ", h("mark", {}, part)]);
  return h("details", {}, h("summary", { class: "line" }, text.slice(0, BEGIN), " …", fields), whole);
}

let below = null; // the lines that are shown, and of which rows

/** An element for these lines, which come later: reading compressed logs takes a while, and the page does not wait for it. */
export function linesBelow(ids, names) {
  if (below?.ids === ids.join()) return below.element;
  const element = h("div", { id: "evidence" }, h("p", { class: "loading-line", role: "status" }, h("span", { class: "spinner", "aria-hidden": "true" }), " Looking for the lines …"));
  below = { ids: ids.join(), element };
  linesOf(ids, names).then((nodes) => put(element, nodes));
  return element;
}

/** The lines that prove some rows, each line once, as nodes. */
export async function linesOf(ids, names) {
  const nodes = [];
  const seen = new Set();
  for (const id of ids) {
    const { lines, problem } = await fetchJson(`evidence/${id}`).catch((error) => { if (error instanceof Problem) return { lines: [], problem: error.message }; throw error; });
    const fresh = lines.filter((line) => !seen.has(line.place) && seen.add(line.place));
    if (ids.length > 1) nodes.push(h("h3", {}, h("code", {}, id), id.startsWith("f") ? " a finding about it" : " this rebalance"));
    if (problem) nodes.push(h("p", { class: "note" }, `The log lines are not shown: ${problem}`));
    nodes.push(...(lines.length && !fresh.length ? [h("p", { class: "note" }, "The same lines prove it.")] : evidenceLines(fresh, names).flat()));
  }
  return nodes;
}
