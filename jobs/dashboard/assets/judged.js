// Entries of the report as cards; what may be said where there is none, and what could not be judged.
import { fetchJson } from "./api.js";
import { h, put } from "./dom.js";
import { evidenceLine } from "./evidence.js";
import { clock, duration } from "./format.js";
import { symbol } from "./looks.js";

/** What the evidence allows to say of a time without entries. attention: of /api/attention. */
export const calm = (attention) => h("p", { class: "lead" }, symbol(attention.all_clear ? "good" : "info"), attention.calm);

/** The class of a card. */
export const look = (entry) => `entry ${entry.severity.toLowerCase()}`;

/** When an entry was, and how often. `begin`: shows its first time. */
export const when = (entry, begin) => `${entry.times > 1 && !entry.away ? `${entry.times} times, ` : ""}${begin(entry.first_at, 0)}${entry.last_at - entry.first_at >= 1000 ? ` to ${clock(entry.last_at, 0)} (${duration(entry.last_at - entry.first_at)})` : ""}${entry.outcome ? `, ${entry.outcome}` : ""}`;

export const cardTitle = (entry, subject, begin) => [symbol(entry.severity.toLowerCase(), entry.severity), entry.code, " ", subject, " ", h("small", {}, [when(entry, begin), entry.clients].filter(Boolean).join(", "))];

/** What happened, what to change, what it cost, what proves it. */
export const cardBody = (entry) => [h("p", {}, entry.message), h("p", { class: "advice" }, h("b", {}, "Advice "), entry.advice), entry.cost ? h("p", { class: "note" }, entry.cost) : null, proof(entry)];

/** The log lines of an entry, which are looked up once somebody wants to see them. */
function proof(entry) {
  const lines = h("div", {}, h("p", { class: "note" }, "Looking for the lines …"));
  const show = async () => {
    const found = await fetchJson(`evidence/${entry.id}`).catch((error) => ({ lines: [], problem: error.message }));
    put(lines, found.problem ? h("p", { class: "note" }, found.problem) : null, found.lines.map((line) => [h("p", { class: "place" }, line.place), line.text === null ? h("p", { class: "note" }, "Not found: the file is gone, or holds another line at this place.") : evidenceLine(line.text, entry.groups)]));
  };
  return h("details", { class: "proof", ontoggle: (event) => event.target.open && show() }, h("summary", {}, "Log lines"), lines);
}

/** What could not be judged, and what would tell. */
export function gaps(attention) {
  if (!attention.gaps.length) return null;
  return h("details", { class: "gaps", open: attention.entries.length ? null : "" }, h("summary", {}, `Not judged (${attention.gaps.length})`),
    h("ul", {}, attention.gaps.map((gap) => h("li", {}, gap.why, h("p", { class: "note" }, "Next: ", gap.next)))));
}
