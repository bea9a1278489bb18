// Stacked columns over time, and a table of the same for those who do not see them.
import { columns } from "./answers.js";
import { Axis, followPointer, labelsOf } from "./axis.js";
import { h, table } from "./dom.js";
import { bound, clock, instant } from "./format.js";
import { swatch } from "./looks.js";
import * as state from "./state.js";

/**
 * Columns by cause, as far as `value` (a column of rows) is known. rows: of the question `activity`, with their looks; step: ms.
 * A column stands for the time from its rows' `began_at` on; who clicks on it chooses that, who drags over columns the time of the drag.
 */
export function chart(rows, step, period, value, noun, format) {
  const steps = Map.groupBy(rows.filter((row) => row[value]).toSorted((a, b) => (a.look < b.look ? -1 : 1)), (row) => row.began_at);
  if (!steps.size) return h("p", { class: "note" }, value === "rebalances" ? "No rebalance in this time." : "None in this time, or no request log that would show it.");
  const [from, to] = [Math.floor(period.from / step) * step, Math.max(period.to, ...[...steps.keys()].map((at) => at + step))];
  const axis = new Axis(from, to, 0, 100);
  const most = Math.max(...[...steps.values()].map((parts) => parts.reduce((sum, row) => sum + row[value], 0)));
  const pick = (from, to) => state.set({ from, to }, { push: true });
  const tip = (row) => `${bound(value, row)}${format(row[value])} ${row.cause}`;
  const picture = h("div", { class: "chart", role: "img", "aria-label": `${noun} over time, by cause; the table below holds the same` },
    [1, 0.5, 0].map((share) => h("i", { class: "level", style: { bottom: `${100 * share}%` } }, h("span", {}, format(share * most)))),
    labelsOf(axis, axis.ticks(22)),
    [...steps].map(([at, parts]) => h("div", { class: "step", style: { left: `${axis.x(at)}%`, width: `${axis.x(at + step) - axis.x(at)}%` }, title: [`${instant(at, 0)} to ${clock(at + step, 0)}`, ...parts.map(tip)].join("\n"), onclick: () => pick(at, at + step) },
      parts.map((row) => h("i", { class: `look-${row.look}`, style: { height: `${(100 * row[value]) / most}%` } })))));
  followPointer(picture, () => new Axis(from, to, 0, picture.clientWidth), pick);
  return [picture, h("details", {}, h("summary", { class: "note" }, "As a table"), table(columns(rows,
    { label: "From", class: "t main", cell: (row) => h("a", { href: state.link("/", { cluster: state.get("cluster"), from: row.began_at, to: row.began_at + step }) }, instant(row.began_at, 0)) }, { label: "Cause", cell: (row) => [swatch(row.look), row.cause] },
    "rebalances", "groups", "total_ms", "unavailable_partition_ms"), rows.slice(0, 300), { caption: noun }))];
}
