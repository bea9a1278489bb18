// The timeline of a group: states, generations, rebalances, findings and a lane for each member, on one canvas.
// A canvas draws what is visible alone: a thousand lanes cost no more than thirty.
import { Axis, followPointer } from "./axis.js";
import { h, put } from "./dom.js";
import { between, duration, many, zoneName } from "./format.js";
import { draw, GEOMETRY, headOf } from "./timeline_draw.js";
import { fillLanes, lanesOf, spoken, tipOf, whatIsAt } from "./timeline_rows.js";

const LEAST_MS = 20;
const ROOM = 0.03; // of the whole time, on both sides
const EMPTY = 0.1;

export class Timeline {
  /** hooks: open(rebalance), mark(finding), moved(from, to), drawn(looks), detail(from, to) -> Promise of {requests, heartbeats, lag}. */
  constructor(hooks) {
    this.hooks = hooks;
    this.canvas = h("canvas", { class: "timeline-canvas", tabindex: "0", role: "application", "aria-roledescription": "timeline", "aria-describedby": "timeline-help" });
    this.spacer = h("div", { class: "timeline-spacer" }, this.canvas);
    this.box = h("div", { class: "timeline-box" }, this.spacer);
    this.said = h("p", { class: "note timeline-said", role: "status" });
    this.span = h("span", { class: "note num" });
    this.frameBox = h("div", { class: "timeline-frame" }, this.box);
    this.element = h("div", { class: "timeline" }, this.tools(), this.frameBox, this.said,
      h("p", { class: "sr", id: "timeline-help" }, "Arrow keys move, plus and minus zoom, 0 shows all, n and p choose a rebalance, Enter opens it. The tables below hold the same."));
    this.pen = this.canvas.getContext("2d", { alpha: false });
    this.view = null;
    this.pointers = new Map();
    this.hovered = null;
    this.chosen = null;
    this.listen();
  }

  tools() {
    const button = (text, label, act) => h("button", { type: "button", title: label, "aria-label": label, onclick: act }, text);
    return h("div", { class: "timeline-tools" },
      button("−", "Zoom out (-)", () => this.zoom(2)), button("+", "Zoom in (+)", () => this.zoom(0.5)),
      button("All", "Show the whole time (0)", () => this.look(this.whole.from, this.whole.to)),
      button("‹", "The rebalance before (p)", () => this.step(-1)), button("›", "The next rebalance (n)", () => this.step(1)),
      this.span);
  }

  /** data: {states, rebalances, findings, memberships, away, from, to, first}; view: {from, to}, or null: from the first event on. */
  update(data, view) {
    const before = this.home;
    const room = Math.max((data.to - data.from) * ROOM, 500);
    const { silences = [], lag = [] } = this.data ?? {};
    this.data = { ...data, ...lanesOf(data.memberships, data.rebalances, data.from, data.to) };
    this.whole = { from: data.from - room, to: data.to + room };
    // A log may be long before the group does anything: an empty beginning of a tenth of the time is left out.
    this.home = { ...this.whole, ...(data.first < data.to && data.first - data.from > (data.to - data.from) * EMPTY && { from: data.first - room }) };
    const followed = before && this.view && this.view.to >= before.to - 1 && this.view.from <= before.from + 1;
    if (view) this.view = view;
    else if (!this.view || followed) this.view = { ...this.home };
    if (this.chosen) this.chosen = data.rebalances.find((row) => row.id === this.chosen.id) ?? null;
    this.add({ silences, lag });
    this.loadDetail();
  }

  /** Adds what takes longer to find: `silences`, rows of that question; `lag` over the whole time, [{at, lag}] in the order of time, if any is known. */
  add(found) {
    Object.assign(this.data, found);
    fillLanes(this.data, "silences", this.data.silences);
    this.canvas.setAttribute("aria-label", spoken(this.data));
    this.layout();
  }

  layout() {
    const width = Math.floor(this.box.clientWidth);
    if (!width || !this.data) return;
    const narrow = width < 620;
    const lane = narrow ? GEOMETRY.narrowLane : GEOMETRY.lane;
    const height = headOf(this.data) + this.data.lanes.length * lane + GEOMETRY.foot;
    const most = Math.max(320, Math.floor(innerHeight * 0.6));
    this.size = { width, height: Math.min(height, most), lane, narrow, left: narrow ? 8 : Math.floor(Math.min(270, width * 0.24, Math.max(140, ...this.data.lanes.map((each) => 24 + 7.2 * each.name.length)))), ratio: devicePixelRatio || 1 };
    this.spacer.style.height = `${height}px`;
    this.box.style.height = `${this.size.height}px`;
    this.canvas.style.height = `${this.size.height}px`;
    const [w, hgt] = [Math.floor(width * this.size.ratio), Math.floor(this.size.height * this.size.ratio)];
    if (this.canvas.width !== w || this.canvas.height !== hgt) { this.canvas.width = w; this.canvas.height = hgt; }
    this.request();
  }

  get axis() { return this.axisOf(this.view); }

  axisOf({ from, to }) { return new Axis(from, to, this.size.left, this.size.width - this.size.left - 10); }

  request() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.frame(); });
  }

  frame() {
    if (!this.size || !this.view) return;
    draw(this.pen, this);
    const { looks } = this.pen;
    const { from, to } = this.view;
    const text = `${between(from, to)} ${zoneName()} (${duration(to - from)}), ${many(this.data.lanes.length, "client")}`;
    if (this.span.textContent !== text) this.span.textContent = text;
    const key = [...looks].sort().join();
    if (key !== this.looks) this.hooks.drawn(looks);
    this.looks = key;
    this.canvas.dataset.frames = String(Number(this.canvas.dataset.frames ?? 0) + 1);
  }

  /** Shows a time, within the whole and not shorter than LEAST_MS. */
  look(from, to) {
    const length = Math.min(Math.max(to - from, LEAST_MS), this.whole.to - this.whole.from);
    const begin = Math.min(Math.max(from, this.whole.from), this.whole.to - length);
    this.view = { from: begin, to: begin + length };
    this.request();
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      const { from, to } = this.view;
      const home = Math.abs(from - this.home.from) < 1 && Math.abs(to - this.home.to) < 1;
      this.hooks.moved(home ? null : Math.round(from), home ? null : Math.round(to));
      this.loadDetail();
    }, 180);
  }

  async loadDetail() {
    const { from, to } = this.view;
    const asked = (this.asked = {});
    const detail = await this.hooks.detail(Math.floor(from), Math.ceil(to));
    if (asked !== this.asked || !detail) return;
    fillLanes(this.data, "waits", detail.requests);
    fillLanes(this.data, "beats", detail.heartbeats);
    this.data.part = { from, to, lag: detail.lag };
    this.request();
  }

  zoom(factor, at = (this.view.from + this.view.to) / 2) {
    const { from, to } = this.view;
    this.look(at - (at - from) * factor, at + (to - at) * factor);
  }

  pan(share) {
    const length = (this.view.to - this.view.from) * share;
    this.look(this.view.from + length, this.view.to + length);
  }

  /** Chooses the next rebalance, or the one before, and moves to it. */
  step(by) {
    const rows = this.data.rebalances;
    if (!rows.length) return;
    const middle = (this.view.from + this.view.to) / 2;
    let index = this.chosen ? rows.findIndex((row) => row.id === this.chosen.id) + by : by > 0 ? rows.findIndex((row) => row.started_at >= middle) : rows.findLastIndex((row) => row.started_at < middle);
    index = Math.min(Math.max(index, 0), rows.length - 1);
    this.choose(rows[index]);
  }

  choose(row) {
    this.chosen = row;
    put(this.said, tipOf({ kind: "rebalance", row }).join(" · "), " ", h("a", { href: this.hooks.href(row) }, "Open"));
    const { from, to } = this.view;
    const length = to - from;
    if (row.started_at < from || row.ended_at > to) this.look(row.started_at - length / 2, row.started_at + length / 2);
    this.request();
  }

  listen() {
    const canvas = this.canvas;
    new ResizeObserver(() => this.layout()).observe(this.box);
    addEventListener("theme", () => this.request());
    this.box.addEventListener("scroll", () => this.request(), { passive: true });
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.up(event));
    canvas.addEventListener("dblclick", (event) => this.zoom(0.4, this.axis.at(event.offsetX)));
    canvas.addEventListener("keydown", (event) => this.key(event));
    followPointer(this.frameBox, (event) => (event?.offsetY < GEOMETRY.overview ? null : this.axis), (from, to) => this.look(from, to), (event) => this.hover(event));
  }

  wheel(event) {
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : 0;
    if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(event.deltaY * 0.0025), this.axis.at(event.offsetX));
    else if (sideways) this.pan(sideways / this.size.width);
    else return;
    event.preventDefault();
  }

  down(event) {
    if (event.button) return;
    this.pointers.set(event.pointerId, event);
    this.canvas.setPointerCapture(event.pointerId);
    this.held = { x: event.offsetX, view: { ...this.view }, moved: false, pans: event.shiftKey || event.pointerType !== "mouse", overview: event.offsetY < GEOMETRY.overview };
    if (this.held.overview) this.jump(event.offsetX);
    this.pinch = this.pointers.size === 2 ? this.gap() : null;
  }

  move(event) {
    if (!this.pointers.has(event.pointerId)) return;
    this.pointers.set(event.pointerId, event);
    if (this.pinch) {
      const gap = Math.max(this.gap(), 1);
      this.zoom(this.pinch / gap, this.axis.at(this.middle()));
      this.pinch = gap;
    } else if (this.held.overview) {
      this.jump(event.offsetX);
    } else {
      const shift = (this.held.x - event.offsetX) / this.axis.scale;
      if (Math.abs(this.held.x - event.offsetX) > 3) this.held.moved = true;
      if (this.held.moved && this.held.pans) this.look(this.held.view.from + shift, this.held.view.to + shift);
    }
  }

  up(event) {
    const click = this.pointers.size === 1 && !this.held?.moved && !this.held?.overview && event.type === "pointerup";
    this.pointers.delete(event.pointerId);
    this.pinch = null;
    if (!click) return;
    const found = whatIsAt(this.pen.places, event.offsetX, event.offsetY);
    if (found?.kind === "rebalance") this.hooks.open(found.row);
    else if (found?.kind === "finding") this.hooks.mark(found.row);
  }

  jump(x) {
    const whole = this.axisOf(this.whole);
    const half = (this.view.to - this.view.from) / 2;
    this.look(whole.at(x) - half, whole.at(x) + half);
  }

  gap() { const [a, b] = [...this.pointers.values()]; return Math.hypot(a.offsetX - b.offsetX, a.offsetY - b.offsetY); }
  middle() { const [a, b] = [...this.pointers.values()]; return (a.offsetX + b.offsetX) / 2; }

  /** Shows what is under the pointer, if it is over the picture. Returns what is said about it. */
  hover(event) {
    const found = event?.target === this.canvas && !event.buttons && this.pen.places ? whatIsAt(this.pen.places, event.offsetX, event.offsetY) : null;
    this.canvas.style.cursor = found?.kind === "rebalance" || found?.kind === "finding" ? "pointer" : "";
    if (found?.row !== this.hovered?.row) { this.hovered = found; this.request(); }
    return found && tipOf(found);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      ArrowLeft: () => this.pan(-0.15), ArrowRight: () => this.pan(0.15), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
      0: () => this.look(this.whole.from, this.whole.to), Home: () => this.look(this.whole.from, this.whole.from + this.view.to - this.view.from),
      End: () => this.look(this.whole.to - this.view.to + this.view.from, this.whole.to), ArrowDown: () => this.box.scrollBy(0, 60), ArrowUp: () => this.box.scrollBy(0, -60),
      PageDown: () => this.box.scrollBy(0, this.size.height * 0.7), PageUp: () => this.box.scrollBy(0, -this.size.height * 0.7),
      n: () => this.step(1), p: () => this.step(-1), Enter: () => this.chosen && this.hooks.open(this.chosen),
    }[event.key];
    if (!act) return;
    act();
    event.preventDefault();
    event.stopPropagation();
  }
}
