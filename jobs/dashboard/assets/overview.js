// All groups over time: a lane for each with its rebalances and findings, and a band through all lanes for each broker's trouble.
import { Axis } from "./axis.js";
import { h, printable } from "./dom.js";
import { between, clock, count, many, zoneName } from "./format.js";
import { symbol } from "./looks.js";
import { axisWithin, followPointer } from "./pointer.js";
import * as state from "./state.js";
import { around } from "./timeline.js";
import { REBALANCE_LETTERS } from "./timeline_draw.js";
import { tipOf } from "./timeline_hit.js";
import { backdrop, bar, point } from "./waterfall.js";

const FEW = { wide: 22, narrow: 14 }; // lanes that leave room for the incidents on the first screen
const narrow = matchMedia("(max-width: 720px)");

/** The picture. attention: of /api/attention; period: {from, to}; groups: how many there are. */
export function overview(attention, period, groups) {
  const axis = new Axis(period.from, period.to, 0, 100);
  const away = attention.entries.map((entry) => entry.away && { ...entry.away, cluster: entry.cluster }).filter((band) => band && band.to >= axis.from && band.from <= axis.to);
  const here = (values) => state.link("/", { cluster: state.get("cluster"), since: state.get("since"), ...values });
  const zoomed = state.number("from") !== null;
  const all = state.get("lanes") === "all";
  const few = narrow.matches ? FEW.narrow : FEW.wide;
  const shown = all ? attention.lanes : attention.lanes.slice(0, few);
  const ticks = axis.ticks(narrow.matches ? 25 : 11);
  const left = (tick) => ({ left: `${axis.x(tick.at)}%` });
  const behind = (cluster) => backdrop(axis, ticks, away.filter((band) => band.cluster === cluster));
  const several = attention.clusters.length > 1;
  const picture = h("div", { class: "lanes" },
    h("div", { class: "lane axis", "aria-hidden": "true" }, h("span", {}, state.zone() === "utc" ? "UTC" : "Local"), h("div", { class: "track" }, ticks.map((tick) => h("span", { class: "tick-label", style: left(tick) }, tick.label)))),
    shown.map((lane) => laneOf(lane, axis, behind(lane.cluster), several, zoomed ? period : {})));
  followPointer(picture, () => axisWithin(picture, ".track", period), (from, to) => state.set({ from, to }, { push: true }));
  return h("figure", { class: "overview", "aria-label": "All groups over time" },
    h("figcaption", {}, `${several ? many(attention.clusters.length, "cluster") : printable(attention.clusters[0].cluster, 60)}, ${between(axis.from, axis.to)} ${zoneName()} `,
      zoomed ? h("a", { href: here({}), "data-key": "whole" }, "Whole time") : null,
      away.map((band) => h("a", { class: "bandname", href: here(around(band.from, band.to)) }, h("i", { class: "wf-key look-away" }), `${band.text} ${clock(band.from, 0)} to ${clock(band.to, 0)}`))),
    picture,
    shown.length < attention.lanes.length ? h("button", { type: "button", "data-key": "lanes", onclick: () => state.set({ lanes: "all" }, { push: true }) }, `Show ${many(attention.lanes.length - few, "more group")}`) : null,
    shown.length === attention.lanes.length && shown.length < groups ? h("p", { class: "note" }, `${count(shown.length)} of ${many(groups, "group")}. `, h("a", { href: state.link("/groups", { cluster: state.get("cluster") }) }, "All groups")) : null);
}

function laneOf(lane, axis, behind, several, period) {
  const symbols = lane.severity ? symbol(lane.severity.toLowerCase(), lane.severity) : null;
  const href = (values) => state.groupLink(lane.cluster, lane.group_id, values);
  const said = `: ${many(lane.rebalances.filter((row) => !row.startup).length, "rebalance")}${lane.findings.length ? `, ${[...new Set(lane.findings.map((row) => row.code))].join(", ")}` : ""}`;
  const track = h("div", { class: "track", "aria-hidden": "true" }, behind,
    lane.rebalances.map((row) => bar(axis, row.started_at, row.ended_at, row.look, REBALANCE_LETTERS[row.look], tipOf({ kind: "rebalance", row }).join("\n"))),
    lane.findings.map((row) => point(axis, row.occurred_at, symbol(row.severity.toLowerCase()), tipOf({ kind: "finding", row }).join("\n"))));
  track.addEventListener("click", (event) => {
    const its = event.target.closest(".wf:not(.look-away), .wf-mark");
    const at = axis.at((100 * (event.clientX - track.getBoundingClientRect().left)) / track.clientWidth);
    location.href = href(its ? around(Number(its.dataset.from), Number(its.dataset.to)) : around(at, at));
  });
  return h("div", { class: "lane" }, h("a", { href: href(period), class: "name" }, symbols, h("span", {}, printable(lane.group_id, 60), several ? h("small", {}, ` ${printable(lane.cluster, 20)}`) : null), h("span", { class: "sr" }, said)), track);
}
