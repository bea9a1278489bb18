// Stacked columns over time. The page has a table of the same for those who do not see them.
import { Axis, labelsOf } from "./axis.js";
import { h } from "./dom.js";
import { clock, instant } from "./format.js";
import { followPointer } from "./pointer.js";

/**
 * Columns. options: {label, steps: [{at, parts: [{look, value, tip}]}], step (ms), from, to, format(value), pick(from, to)}.
 * A column stands for the time from `at` to `at` + `step`; who clicks on it picks that, who drags over columns the time of the drag.
 */
export function columns({ label, steps, step, from, to, format, pick }) {
  const axis = new Axis(from, to, 0, 100);
  const most = Math.max(...steps.map(({ parts }) => parts.reduce((sum, part) => sum + part.value, 0)));
  const chart = h("div", { class: "chart", role: "img", "aria-label": label },
    [1, 0.5, 0].map((share) => h("i", { class: "level", style: { bottom: `${100 * share}%` } }, h("span", {}, format(share * most)))),
    labelsOf(axis, axis.ticks(22)),
    steps.map(({ at, parts }) => h("div", { class: "step", style: { left: `${axis.x(at)}%`, width: `${axis.x(at + step) - axis.x(at)}%` }, title: `${instant(at, 0)} to ${clock(at + step, 0)}\n${parts.map((part) => part.tip).join("\n")}`, onclick: () => pick(at, at + step) },
      parts.map((part) => h("i", { class: `look-${part.look}`, style: { height: `${(100 * part.value) / most}%` } })))));
  followPointer(chart, () => new Axis(from, to, 0, chart.clientWidth), pick);
  return chart;
}
