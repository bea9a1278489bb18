// The pointer over pictures of time: a line with its time through all pictures of the page, and a drag that chooses a time.
import { Axis } from "./axis.js";
import { h, put } from "./dom.js";
import { clock } from "./format.js";

const DRAGGED = 8; // pixels
const FINE = 120000; // ms: longer times show no milliseconds

/** The axis of a picture in its own pixels. track: selector of what is as wide as the axis. */
export function axisWithin(picture, track, { from, to }) {
  const its = picture.querySelector(track).getBoundingClientRect();
  return new Axis(from, to, its.left - picture.getBoundingClientRect().left, its.width);
}

/** Says at the pointer what it is over, if anything: some lines, of which the first is their head. */
export function showTip(tip, lines, { clientX, clientY } = {}) {
  tip.hidden = !lines;
  if (!lines) return;
  const [first, ...others] = lines;
  put(tip, h("b", {}, first), others.join("\n"));
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(clientX + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${clientY + 18 + height > innerHeight ? clientY - height - 10 : clientY + 18}px`;
}

/** The title of a mark, at once: a browser would wait. */
function explain(tip, event) {
  const mark = event.target.closest("[title], [data-tip]");
  if (mark?.title) mark.dataset.tip = mark.title;
  mark?.removeAttribute("title");
  if (mark && !tip.isConnected) event.currentTarget.append(tip);
  showTip(tip, mark?.dataset.tip.split("\n"), event);
}

/** axisOf(event): the axis in pixels of the picture; null where no time is under the pointer. picked(from, to): a time was dragged over. */
export function followPointer(picture, axisOf, picked) {
  const line = h("i", { class: "cross", hidden: true, "aria-hidden": "true" }, h("b"));
  const box = h("i", { class: "brush", hidden: true });
  const tip = h("div", { class: "tip", hidden: true });
  let began = null;
  const place = (event) => event.clientX - picture.getBoundingClientRect().left;
  const within = (axis, x) => axis !== null && x >= axis.left && x <= axis.left + axis.width;
  const tell = (at) => { for (const each of document.querySelectorAll(".cross")) each.show(at); };
  line.show = (at) => {
    const axis = axisOf();
    const x = axis.x(at ?? NaN);
    line.hidden = !within(axis, x);
    line.style.setProperty("left", `${x}px`);
    line.firstChild.textContent = line.hidden ? "" : clock(at, axis.to - axis.from > FINE ? 0 : 3);
    line.firstChild.style.setProperty("translate", `${(-100 * (x - axis.left)) / axis.width}%`); // within the picture at both of its ends
  };
  picture.append(line, box);
  picture.addEventListener("pointerdown", (event) => { began = event.pointerType === "mouse" && !event.button && !event.shiftKey && within(axisOf(event), place(event)) ? place(event) : null; });
  picture.addEventListener("pointerleave", () => { tip.hidden = true; tell(null); });
  picture.addEventListener("pointermove", (event) => {
    const [axis, x] = [axisOf(event), place(event)];
    explain(tip, event);
    if (event.pointerType === "mouse") tell(within(axis, x) ? axis.at(x) : null);
    if (!event.buttons) began = null;
    box.hidden = began === null || Math.abs(x - began) < DRAGGED;
    for (const [name, value] of [["left", Math.min(x, began)], ["width", Math.abs(x - began)]]) box.style.setProperty(name, `${value}px`);
  });
  picture.addEventListener("click", (event) => {
    if (box.hidden) return;
    event.stopPropagation();
    box.hidden = true;
    const axis = axisOf();
    const [from, to] = [began, place(event)].sort((a, b) => a - b).map((x) => Math.round(axis.at(Math.min(Math.max(x, axis.left), axis.left + axis.width))));
    if (to > from) picked(from, to);
  }, { capture: true });
}
