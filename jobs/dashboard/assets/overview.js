// Lanes over time: brokers that were in trouble, then all groups with their rebalances and findings, and a band where a broker's trouble hit one.
import { around, Axis, axisWithin, followPointer, labelsOf } from "./axis.js";
import { h, printable } from "./dom.js";
import { between, clock, count, many, zoneName } from "./format.js";
import { idsOf, when } from "./judged.js";
import { letter, symbol } from "./looks.js";
import * as state from "./state.js";
import { tipOf } from "./timeline_rows.js";
import { backdrop, bar, point } from "./waterfall.js";

const TAIL = 8; // characters of a name that stay
const FEW = { wide: 22, narrow: 11 }; // lanes that leave room for the incidents on the first screen
const narrow = matchMedia("(max-width: 720px)");

/** The picture. attention: of /api/attention; period: {from, to}; groups: how many there are. */
export function overview(attention, period, groups) {
  const axis = new Axis(period.from, period.to, 0, 100);
  const away = attention.entries.map((entry) => entry.away && { ...entry.away, cluster: entry.cluster, severity: entry.severity, groups: entry.incident.groups, tip: tipOfEntry(entry) }).filter((band) => band && band.to >= axis.from && band.from <= axis.to);
  const first = attention.entries[0];
  const here = (values) => state.link("/", { cluster: state.get("cluster"), since: state.get("since"), ...values });
  const zoomed = state.number("from") !== null;
  const all = state.get("lanes") === "all";
  const few = narrow.matches ? FEW.narrow : FEW.wide;
  const shown = all ? attention.lanes : attention.lanes.slice(0, few);
  const ticks = axis.ticks(narrow.matches ? 25 : 11);
  const behind = (lane) => backdrop(axis, ticks, away.filter((band) => band.cluster === lane.cluster && band.groups.includes(lane.group_id)).map((band) => ({ ...band, text: band.tip })));
  const entryOf = new Map(attention.entries.flatMap((entry) => idsOf(entry).map((id) => [id, entry])));
  const isFirst = (lane) => first.cluster === lane.cluster && (first.incident?.groups ?? first.groups).includes(lane.group_id);
  const several = attention.clusters.length > 1;
  const picture = h("div", { class: "lanes" },
    h("div", { class: "lane axis", "aria-hidden": "true" }, h("span", {}, state.zone() === "utc" ? "UTC" : "Local"), h("div", { class: "track" }, labelsOf(axis, ticks))),
    Object.values(Object.groupBy(away, (band) => JSON.stringify([band.cluster, band.broker]))).map((bands) => outage(bands, axis, ticks, several, here)),
    shown.map((lane) => laneOf(lane, entryOf, axis, behind(lane), several, zoomed ? period : {}, !first || isFirst(lane) ? "" : " dim")));
  followPointer(picture, () => axisWithin(picture, ".track", period), (from, to) => state.set({ from, to }, { push: true }));
  return h("figure", { class: "overview", "aria-label": "All groups over time" },
    h("figcaption", {}, `${several ? many(attention.clusters.length, "cluster") : printable(attention.clusters[0].cluster, 60)}, ${between(axis.from, axis.to)} ${zoneName()} `,
      zoomed ? h("a", { href: here({}), "data-key": "whole" }, "Whole time") : null),
    picture,
    shown.length < attention.lanes.length ? h("button", { type: "button", "data-key": "lanes", onclick: () => state.set({ lanes: "all" }, { push: true }) }, `Show ${attention.lanes.length - few} more of ${many(groups, "group")}`) : null,
    shown.length === attention.lanes.length && shown.length < groups ? h("p", { class: "note" }, `${count(shown.length)} of ${many(groups, "group")}. `, h("a", { href: state.link("/groups", { cluster: state.get("cluster") }) }, "All groups")) : null);
}

/** The lane of a broker: each time it was in trouble. */
function outage(bands, axis, ticks, several, here) {
  const said = bands.map((band) => `${band.text} ${clock(band.from, 0)} to ${clock(band.to, 0)}`).join(", ");
  const [{ cluster, text, severity }] = bands;
  const span = around(Math.min(...bands.map((band) => band.from)), Math.max(...bands.map((band) => band.to)));
  return h("div", { class: "outage" }, h("a", { class: "name bandname", href: here(span), title: said }, symbol(severity.toLowerCase(), severity), h("span", {}, printable(text, 60), several ? h("small", {}, ` ${printable(cluster, 20)}`) : null), h("span", { class: "sr" }, said)),
    h("div", { class: "track", "aria-hidden": "true" }, backdrop(axis, ticks, bands.map((band) => ({ ...band, text: band.tip })))));
}

/** What is said of an entry where the pointer is: what and who, when, what it cost, what to change. */
const tipOfEntry = (entry) => [entry.title, `${entry.subject}, ${when(entry, clock)}`, entry.cost, entry.change].filter(Boolean).join("\n");

/** A name that is cut in its middle where it has no room: names of one kind differ at their ends. */
const cut = (name) => h("span", { class: "cut" }, h("span", {}, name.slice(0, -TAIL)), name.slice(-TAIL));

function laneOf(lane, entryOf, axis, behind, several, period, dim) {
  const symbols = lane.severity ? symbol(lane.severity.toLowerCase(), lane.severity) : h("i");
  const href = (values) => state.groupLink(lane.cluster, lane.group_id, values);
  const said = `: ${many(lane.rebalances.filter((row) => !row.startup).length, "rebalance")}${lane.findings.length ? `, ${[...new Set(lane.findings.map((row) => row.code))].join(", ")}` : ""}`;
  const track = h("div", { class: "track", "aria-hidden": "true" }, behind,
    lane.rebalances.map((row) => bar(axis, row.started_at, row.ended_at, row.look, letter(row.look), tipOf({ kind: "rebalance", row }).join("\n"))),
    lane.findings.map((row) => point(axis, row.occurred_at, symbol(row.severity.toLowerCase()), entryOf.has(row.id) ? tipOfEntry(entryOf.get(row.id)) : tipOf({ kind: "finding", row }).join("\n"))));
  track.addEventListener("click", (event) => {
    const its = event.target.closest(".wf:not(.look-away), .wf-mark");
    const at = axis.at((100 * (event.clientX - track.getBoundingClientRect().left)) / track.clientWidth);
    location.href = href(its ? around(Number(its.dataset.from), Number(its.dataset.to)) : around(at, at));
  });
  return h("div", { class: `lane${dim}` }, h("a", { href: href(period), class: "name", title: printable(lane.group_id, 200) }, symbols, h("span", {}, cut(printable(lane.group_id, 60)), several ? h("small", {}, ` ${printable(lane.cluster, 20)}`) : null), h("span", { class: "sr" }, said)), track);
}
