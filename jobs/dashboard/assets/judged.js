// Entries of the report as rows with a panel, and the log lines that prove them: the fields that matter are marked, the rest of a long line is
// folded. What may be said where there is no entry, and what could not be judged.
import { fetchJson, Problem } from "./api.js";
import { around } from "./axis.js";
import { h, printable, put } from "./dom.js";
import { bound, clock, count, duration, instant, many } from "./format.js";
import { symbol } from "./looks.js";
import * as state from "./state.js";

const LONG = 240; // characters
const BEGIN = 25; // of a long line: its time
const FIELDS = String.raw`\(reason: (?:[^()]|\([^)]*\))*\)|"reason":"[^"]*"|"?[Gg]eneration(?:Id)?"?[ :=]+-?\d+|"?(?:member|group)?[Ee]poch"?[ :=]+-?\d+|"errorCode":-?[1-9]\d*|"requestApiKeyName":"\w+"|\b[A-Z]\w*Exception\b|\b(?:ERROR|FATAL)\b`;
const FIRST = 10; // incidents that are listed unless all are asked for
const HEADS = [["what", "What"], ["t", "When"], ["n", "Unowned"], ["change", "What to change"]];
const spacious = matchMedia("(min-width: 1600px)");

/** What the evidence allows to say of a time without entries. attention: of /api/attention. */
export const calm = (attention) => h("p", { class: "lead" }, symbol(attention.all_clear ? "good" : "info"), attention.calm);

/** The findings that an entry is made of. */
export const idsOf = (entry) => [...entry.findings, ...entry.followed_by];

/** When an entry was, how often, and whether it is over. begin: shows its first time. */
export const when = (entry, begin) => [entry.times, begin(entry.first_at, 0) + (entry.lasted && ` to ${clock(entry.last_at, 0)} (${entry.lasted})`), entry.outcome].filter(Boolean).join(", ");

/** A card. body: what happened, what to change, who did it and what it cost. */
export const card = (tag, entry, look, title, ...more) => h(tag, { class: `entry ${entry.severity.toLowerCase()} ${look}`.trim(), "aria-label": entry.title },
  h("h3", {}, symbol(entry.severity.toLowerCase(), entry.severity), title), h("p", {}, printable(entry.message, 1200)), entry.advice ? h("p", {}, h("b", {}, "Advice "), printable(entry.advice, 1200)) : null,
  entry.clients || entry.cost ? h("p", { class: "note" }, [entry.clients, entry.cost].filter(Boolean).join(" · ")) : null, more);

/** An entry as a row: how grave, when, what, what it cost, what to change. tag: button or summary; titled: the heading of the page has its title. */
export const rowOf = (entry, tag, others = {}, titled = false) => h(tag, { class: "row", ...others }, symbol(entry.severity.toLowerCase(), entry.severity),
  h("span", { class: "what" }, titled ? h("b", {}, entry.subject) : [h("b", {}, entry.title), h("small", {}, entry.subject)]),
  h("span", { class: "t" }, clock(entry.first_at, 0), h("small", {}, [entry.times, entry.lasted, entry.outcome].filter(Boolean).join(", "))),
  h("span", { class: "n" }, entry.unavailable_partition_ms === null ? "" : [bound("unavailable_partition_ms", entry) + duration(entry.unavailable_partition_ms), h("span", { class: "sr" }, " unowned")], h("small", {}, entry.rebalances ? many(entry.rebalances, "rebalance") : entry.refused ? `${many(entry.refused.requests, "join")} refused` : "")),
  h("span", { class: "change" }, entry.change));

/**
 * A row for each incident. The one that is chosen has its panel: beside the rows, or below its own where there is no room.
 * all: how many there are, of which the gravest are `entries`; own(entry): a button of the page; titled: its heading is the first entry's title.
 */
export function incidents({ entries, all }, own = () => null, titled = false) {
  const listed = state.get("incidents") === "all" ? entries : entries.filter((entry, place) => place < FIRST || entry.severity === "ERROR");
  const list = h("ol", { class: "incidents", id: "attention", style: { "--rows": listed.length + 1 } });
  const show = () => {
    const chosen = state.get("entry") || (spacious.matches ? listed[0].id : "");
    put(list, h("li", { class: "row", "aria-hidden": "true" }, HEADS.map(([cell, text]) => h("span", { class: cell }, text))),
      listed.map((entry) => h("li", {}, rowOf(entry, "button", { type: "button", "data-key": entry.id, "aria-expanded": String(entry.id === chosen), onclick: () => { state.set({ entry: entry.id === chosen ? "none" : entry.id }, { tell: false }); show(); } }, titled && entry === listed[0]), entry.id === chosen ? details(entry, own(entry)) : null)));
  };
  show();
  return [list,
    listed.length < entries.length ? h("p", {}, h("a", { href: state.link(state.path(), { ...Object.fromEntries(state.values()), incidents: "all" }) }, `All ${many(entries.length, "incident")}`)) : null,
    listed.length === entries.length && all > entries.length && state.number("from") === null ? h("p", { class: "note" }, `The first ${count(listed.length)} are listed.`) : null];
}

/** The panel of an incident: what happened, what to change, what it cost, and the log lines that prove it. */
function details(entry, button) {
  const groups = entry.groups.map((group) => h("a", { href: state.groupLink(entry.cluster, group, around(entry.first_at, entry.last_at)) }, printable(group, 60)));
  const title = [entry.title, " ", h("small", {}, groups.length === 1 ? groups : entry.subject, ", ", when(entry, instant), " ", h("code", {}, entry.code)), button];
  return card("section", entry, "detail", title, entry.settings.length > 1 ? h("ul", {}, entry.settings.map((text) => h("li", {}, text))) : null,
    groups.length === 1 ? null : h("p", {}, groups.flatMap((link) => [link, " "])), linesBelow([entry.id], entry.groups));
}

/** What could not be judged, and what would tell. */
export function gaps(attention) {
  if (!attention.gaps.length) return null;
  return h("details", { class: "gaps", open: attention.entries.length ? null : "" }, h("summary", {}, `Not judged (${attention.gaps.length})`),
    h("ul", {}, attention.gaps.map((gap) => h("li", {}, gap.why, h("p", { class: "note" }, "Next: ", gap.next)))));
}

/** A line and its place. names: of the group, its members and clients, as they are in the tables. */
const shown = (line, names) => [
  h("p", { class: "place" }, `${line.source} ${line.place}`, line.file && !line.place.includes(line.file) ? ` (now in ${line.file})` : ""),
  line.text === null ? h("p", { class: "note" }, "Not found: the file is gone or has changed.") : marked(line.text, names),
];

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
  const element = h("div", { class: "evidence" }, h("p", { class: "loading-line", role: "status" }, h("span", { class: "spinner", "aria-hidden": "true" }), " Looking for the lines …"));
  below = { ids: ids.join(), element };
  linesOf(ids, names).then((nodes) => put(element, nodes));
  return element;
}

/** The lines that prove some rows, each line once, as nodes. */
async function linesOf(ids, names) {
  const nodes = [];
  const seen = new Set();
  for (const id of ids) {
    const { lines, problem } = await fetchJson(`evidence/${id}`).catch((error) => { if (error instanceof Problem) return { lines: [], problem: error.message }; throw error; });
    const fresh = lines.filter((line) => !seen.has(line.place) && seen.add(line.place));
    if (ids.length > 1) nodes.push(h("h3", {}, h("code", {}, id), id.startsWith("f") ? " a finding about it" : " this rebalance"));
    if (problem) nodes.push(h("p", { class: "note" }, `The log lines are not shown: ${problem}`));
    nodes.push(...(lines.length && !fresh.length ? [h("p", { class: "note" }, "The same lines prove it.")] : fresh.flatMap((line) => shown(line, names))));
  }
  return nodes;
}
