// Entries of the report as rows and as cards; what may be said where there is none, and what could not be judged.
import { h, printable } from "./dom.js";
import { linesOf } from "./evidence.js";
import { bound, clock, duration, many } from "./format.js";
import { symbol } from "./looks.js";

/** What the evidence allows to say of a time without entries. attention: of /api/attention. */
export const calm = (attention) => h("p", { class: "lead" }, symbol(attention.all_clear ? "good" : "info"), attention.calm);

/** The findings that an entry is made of. */
export const idsOf = (entry) => [...entry.findings, ...entry.followed_by];

/** The class of a card. */
export const look = (entry) => `entry ${entry.severity.toLowerCase()}`;

/** When an entry was, how often, and whether it is over. `begin`: shows its first time. */
export const when = (entry, begin) => [entry.times, begin(entry.first_at, 0) + (entry.lasted && ` to ${clock(entry.last_at, 0)} (${entry.lasted})`), entry.outcome].filter(Boolean).join(", ");

export const cardTitle = (entry, subject, begin) => [symbol(entry.severity.toLowerCase(), entry.severity), entry.title, " ", h("small", {}, subject, subject && ", ", when(entry, begin), " ", h("code", {}, entry.code))];

/** What happened, what to change, who did it and what it cost. */
export const cardBody = (entry) => [h("p", {}, printable(entry.message, 1200)), h("p", { class: "advice" }, h("b", {}, "Advice "), printable(entry.advice, 1200)), entry.clients || entry.cost ? h("p", { class: "note" }, [entry.clients, entry.cost].filter(Boolean).join(" · ")) : null];

/** An entry as a row: how grave, when, what, what it cost, what to change. tag: button or summary. */
export const rowOf = (entry, tag, others = {}) => h(tag, { class: "row", ...others }, symbol(entry.severity.toLowerCase(), entry.severity),
  h("span", { class: "what" }, h("b", {}, entry.title), h("small", {}, entry.subject)),
  h("span", { class: "t" }, clock(entry.first_at, 0), h("small", {}, [entry.times, entry.lasted, entry.outcome].filter(Boolean).join(", "))),
  h("span", { class: "n" }, entry.unavailable_partition_ms === null ? "" : [bound("unavailable_partition_ms", entry) + duration(entry.unavailable_partition_ms), h("span", { class: "sr" }, " unowned")], h("small", {}, entry.rebalances ? many(entry.rebalances, "rebalance") : entry.refused ? `${many(entry.refused.requests, "join")} refused` : "")),
  h("span", { class: "change" }, entry.change));

/** The log lines of an entry, which are looked up once somebody wants to see them. */
export const proof = (entry) => h("details", { class: "proof", ontoggle: async ({ target }) => { if (target.open && target.children.length === 1) target.append(...await linesOf([entry.id], entry.groups)); } }, h("summary", {}, "Log lines"));

/** What could not be judged, and what would tell. */
export function gaps(attention) {
  if (!attention.gaps.length) return null;
  return h("details", { class: "gaps", open: attention.entries.length ? null : "" }, h("summary", {}, `Not judged (${attention.gaps.length})`),
    h("ul", {}, attention.gaps.map((gap) => h("li", {}, gap.why, h("p", { class: "note" }, "Next: ", gap.next)))));
}
