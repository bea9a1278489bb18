// Stacked columns over time, on a canvas, with a table for those who do not see it.
import { Axis } from "./axis.js";
import { h, put } from "./dom.js";
import { instant } from "./format.js";
import { span } from "./looks.js";

const TOP = 8, FOOT = 20, LEFT = 78;

/**
 * Columns. options: {label, steps: [{at, parts: [{look, letter, value, tip}]}], step (ms), from, to, format(value), href(at, step)}.
 * A column stands for the time from `at` to `at` + `step`.
 */
export function columns(options) {
  const canvas = h("canvas", { class: "chart-canvas", role: "img", "aria-label": options.label });
  const tip = h("div", { class: "tip", hidden: true });
  const element = h("div", { class: "chart" }, canvas, tip);
  const most = Math.max(...options.steps.map((step) => step.parts.reduce((sum, part) => sum + part.value, 0)), 0);
  let axis = null;
  const draw = () => {
    const width = element.clientWidth;
    const height = 150;
    if (!width) return;
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.floor(width * ratio);
    canvas.height = Math.floor(height * ratio);
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(canvas);
    axis = new Axis(options.from, options.to, LEFT, width - LEFT - 8);
    const bottom = height - FOOT;
    const scale = (bottom - TOP) / (most || 1);
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = style.color;
    pen.strokeStyle = style.borderTopColor;
    pen.textBaseline = "middle";
    for (const value of [0, most / 2, most]) {
      if (most === 0 && value > 0) continue;
      const y = Math.round(bottom - value * scale) + 0.5;
      pen.globalAlpha = 0.35;
      pen.beginPath();
      pen.moveTo(LEFT, y);
      pen.lineTo(width - 8, y);
      pen.stroke();
      pen.globalAlpha = 1;
      pen.textAlign = "right";
      pen.fillText(options.format(value), LEFT - 6, y);
    }
    pen.textAlign = "center";
    for (const tick of axis.ticks()) {
      const x = axis.x(tick.at);
      if (x > LEFT + 14 && x < width - 24) pen.fillText(tick.label, x, height - 8);
    }
    for (const step of options.steps) {
      const x = axis.x(step.at);
      const wide = Math.max(axis.x(step.at + options.step) - x - 1, 1.5);
      let y = bottom;
      for (const part of step.parts) {
        const high = part.value * scale;
        span(pen, part.look, x, y - high, wide, high, high > 13 ? part.letter : "");
        y -= high;
      }
    }
  };
  const at = (event) => {
    const time = axis?.at(event.offsetX);
    return options.steps.find((step) => time >= step.at && time < step.at + options.step);
  };
  canvas.addEventListener("pointermove", (event) => {
    const step = at(event);
    tip.hidden = !step;
    canvas.style.cursor = step && options.pick ? "pointer" : "";
    if (!step) return;
    put(tip, h("b", {}, `${instant(step.at, 0)} to ${instant(step.at + options.step, 0).slice(11)}`), step.parts.map((part) => part.tip).join("\n"));
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${event.clientY + 16}px`;
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("click", (event) => { const step = at(event); if (step) options.pick?.(step.at, options.step); });
  new ResizeObserver(draw).observe(element);
  addEventListener("theme", draw);
  return element;
}
