// Draws the timeline: everything that is visible, back to front.
import { count, duration } from "./format.js";
import { lookOfEnd } from "./timeline_rows.js";
import { colour, edge, fill, label, SHAPES, span, swatch } from "./looks.js";

/** Heights in pixels, from the top: the overview, the axis, findings, states, rebalances, lag, lanes. */
export const GEOMETRY = { overview: 30, axis: 50, findings: 72, states: 94, rebalances: 120, head: 126, lag: 44, lane: 22, narrowLane: 36, foot: 10 };

/** Where the lanes begin. */
export const headOf = (data) => GEOMETRY.head + (data.lag.length ? GEOMETRY.lag : 0);

/** The lag as it is shown: of the part that is looked at, once that is known. */
const lagOf = ({ data, view }) => (data.part?.from <= view.from && data.part.to >= view.to ? data.part.lag : data.lag);

const NEAR = 8; // pixels

const STATES = { Stable: "stable", PreparingRebalance: "preparing", CompletingRebalance: "completing", Reconciling: "reconciling", Empty: "empty", Dead: "dead" };

/** How a state is drawn; null: it is none that is known. */
export const stateSwatch = (state) => (STATES[state] ? swatch(STATES[state]) : null);

/** The spans of the group's states: [{state, look, from, to, generation, row}]. */
function stateSpans(data) {
  if (data.stateSpans) return data.stateSpans;
  const rows = data.states;
  const found = rows.length && rows[0].occurred_at > data.from ? [{ state: rows[0].from_state, from: data.from, to: rows[0].occurred_at, generation: null, row: null }] : [];
  rows.forEach((row, index) => found.push({ state: row.to_state, from: row.occurred_at, to: rows[index + 1]?.occurred_at ?? data.to, generation: row.generation, row }));
  data.stateSpans = found.filter((each) => each.to > each.from && STATES[each.state]).map((each) => ({ ...each, look: STATES[each.state] }));
  return data.stateSpans;
}

/** Draws the picture. Leaves with the pen the names of the `looks` that are in it, and what is where (`places`, back to front). */
export function draw(pen, timeline) {
  const { size, data, canvas } = timeline;
  pen.looks = new Set();
  pen.places = [];
  pen.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
  rect(pen, colour("paper"), 0, 0, size.width, size.height);
  const axis = timeline.axis;
  const visible = data.rebalances.filter((row) => row.ended_at >= axis.from && row.started_at <= axis.to);
  for (const band of data.away.filter((each) => each.to >= axis.from && each.from <= axis.to)) {
    const place = [axis.near(band.from), GEOMETRY.axis, Math.max(axis.near(band.to) - axis.near(band.from), 2), size.height];
    rect(pen, fill(pen, "away"), ...place);
    put(pen, { kind: "away", row: band }, ...place);
  }
  for (const x of axis.ticks().map((tick) => Math.round(axis.x(tick.at)) + 0.5)) line(pen, colour("rule"), 1, [x, GEOMETRY.axis - 4], [x, size.height]);
  shades(pen, timeline, axis, visible);
  lanes(pen, timeline, axis);
  head(pen, timeline, axis, visible);
  if (document.activeElement === canvas) frame(pen, 1, 1, size.width - 2, size.height - 2);
}

/** Notes what is drawn in a place; null: nothing that lies below it is meant. room: so near to it the pointer still means it. */
const put = (pen, what, x, y, width, height, room = 0) => pen.places.push({ what, x, y, width, height, room });

function rect(pen, ink, x, y, width, height) {
  pen.fillStyle = ink;
  pen.fillRect(x, y, width, height);
}

/** What has the focus, is chosen, or is shown of the whole time. */
function frame(pen, x, y, width, height) {
  pen.strokeStyle = colour("link");
  pen.lineWidth = 2;
  pen.strokeRect(x, y, width, height);
}

function line(pen, ink, width, ...points) {
  pen.strokeStyle = ink;
  pen.lineWidth = width;
  pen.beginPath();
  for (const [x, y] of points) pen.lineTo(x, y);
  pen.stroke();
}

function write(pen, text, x, y, ink, align = "center", font = "11px system-ui, sans-serif") {
  Object.assign(pen, { font, textAlign: align, textBaseline: "middle", fillStyle: colour(ink) });
  pen.fillText(text, x, y);
}

/** Draws within a part of the picture alone. */
function within(pen, box, act) {
  pen.save();
  pen.beginPath();
  pen.rect(...box);
  pen.clip();
  act();
  pen.restore();
}

/** Rebalances as shades through all lanes. */
function shades(pen, timeline, axis, visible) {
  const { size, chosen, hovered } = timeline;
  let drawn = -1;
  for (const row of visible) {
    const x = axis.near(row.started_at);
    const end = Math.max(axis.near(row.ended_at), x + 1);
    const bright = row.id === chosen?.id || row === hovered?.row;
    put(pen, { kind: "rebalance", row }, x, GEOMETRY.head, end - x, size.height);
    if (end <= drawn + 0.5 && !bright) continue;
    const left = bright ? x : Math.max(x, drawn);
    rect(pen, colour(bright ? "focus" : "shade"), left, GEOMETRY.rebalances, end - left, size.height);
    drawn = Math.max(drawn, end);
  }
}

function lanes(pen, timeline, axis) {
  const { size, data, box } = timeline;
  const top = headOf(data);
  const first = Math.max(0, Math.floor(box.scrollTop / size.lane));
  const last = Math.min(data.lanes.length, Math.ceil((box.scrollTop + size.height - top) / size.lane) + 1);
  within(pen, [0, top, size.width, size.height], () => {
    for (let index = first; index < last; index++) lane(pen, timeline, axis, data.lanes[index], top + index * size.lane - box.scrollTop);
  });
}

function lane(pen, timeline, axis, lane, top) {
  const { size, hovered } = timeline;
  const height = size.narrow ? 14 : 13;
  const y = top + size.lane - height - (size.narrow ? 4 : 4.5);
  if (hovered?.lane === lane) rect(pen, colour("focus"), 0, top, size.left - 4, size.lane);
  within(pen, [size.left, top, axis.width + 10, size.lane], () => {
    for (const row of lane.spans) membership(pen, axis, lane, row, y, height, timeline.data);
    for (const row of lane.beats) beats(pen, axis, row, y + height - 3);
    for (const row of lane.waits) wait(pen, axis, lane, row, y, height);
    for (const row of lane.silences) {
      const [x, end] = [axis.near(row.silent_from), axis.near(row.silent_until)];
      if (end < size.left || x > size.width) continue;
      rect(pen, fill(pen, "silent"), x, y + 2, Math.max(end - x, 1), height - 4);
      put(pen, { kind: "silence", row, lane }, x, top, end - x, size.lane);
      if (end - x > 64) label(pen, `silent ${duration(row.silent_ms)}`, (Math.max(x, size.left) + Math.min(end, size.width)) / 2, y + height / 2);
    }
    for (const row of lane.blames) if (shown(axis, row.started_at)) blame(pen, axis.x(row.started_at), y, height, lane, row);
    for (const row of lane.spans) {
      if (row.joined_at !== null && shown(axis, row.joined_at)) mark(pen, "joined", axis.x(row.joined_at) + 4, y + height / 2, 0.55);
      if (row.ended_at !== null && shown(axis, row.ended_at)) mark(pen, lookOfEnd(row.end_kind), axis.x(row.ended_at), y + height / 2, 0.8, { kind: "membership", row, lane });
    }
  });
  name(pen, size, lane, top);
  put(pen, { kind: "lane", row: lane, lane }, 0, top, size.left, size.lane);
}

function membership(pen, axis, lane, row, y, height, data) {
  const x = axis.near(row.joined_at ?? data.from);
  const end = axis.near(row.ended_at ?? data.to);
  if (end < axis.left || x > axis.left + axis.width + 10) return;
  rect(pen, fill(pen, "member"), x, y, Math.max(end - x, 1), height);
  put(pen, { kind: "membership", row, lane }, x, y - 5, end - x, height + 9, 3);
  if (end - x > 4) { pen.strokeStyle = edge("member"); pen.lineWidth = 0.6; pen.strokeRect(x, y, end - x, height); }
}

/** Heartbeats: a tick each where there is room, else a line. */
function beats(pen, axis, row, y) {
  const [x, end] = [axis.near(row.first_at), axis.near(row.last_at)];
  const count = row.beats?.length ?? row.beat_count ?? 1;
  const dense = count > 1 && (axis.x(row.last_at) - axis.x(row.first_at)) / count < 5;
  if (dense || (count > 1 && !row.beats)) rect(pen, colour("dim"), x, y + 1, Math.max(end - x, 1), 1);
  else for (const beat of row.beats ?? [0]) { const at = axis.x(row.first_at + beat); if (at > axis.left && at < axis.left + axis.width) rect(pen, colour("dim"), at, y, 1, 3); }
}

/** A JoinGroup or SyncGroup that waited for its answer. */
function wait(pen, axis, lane, row, y, height) {
  const look = { JOIN_GROUP: "preparing", SYNC_GROUP: "completing" }[row.kind];
  const [x, end] = [axis.near(row.received_at), axis.near(row.occurred_at)];
  put(pen, { kind: "wait", row, lane }, x, y - 5, end - x, height + 9, 1);
  if (row.error_code && row.error_code !== 27 && row.error_code !== 79) rect(pen, colour("error"), end - 1, y - 2, 2, height + 4);
  else if (look && end - x > 0.7) span(pen, look, x, y + 1, end - x, height - 4);
}

/** The culprit of a rebalance: a flag where it began. */
function blame(pen, x, y, height, lane, row) {
  put(pen, { kind: "rebalance", row, lane }, x, y - 5, 0, height + 9, NEAR);
  line(pen, colour("ink"), 1.5, [x, y - 3], [x, y + height]);
  pen.fillStyle = fill(pen, row.look);
  line(pen, colour("ink"), 1.5, [x, y - 4], [x + 9, y - 0.5], [x, y + 3], [x, y - 4]);
  pen.fill();
}

/** Whether a mark at this time is in the picture. */
const shown = (axis, at) => Math.abs(axis.x(at) - axis.left - axis.width / 2) < axis.width / 2 + 8;

const paths = new Map();

/** A symbol, as in looks.js, with an edge that parts it from what is behind. what: it stands for. */
function mark(pen, look, x, y, scale, what = null) {
  pen.looks.add(look);
  if (what) put(pen, what, x, y - 11, 0, 22, NEAR);
  pen.save();
  pen.translate(x - 8 * scale, y - 8 * scale);
  pen.scale(scale, scale);
  for (const [index, { d, fill: inside, stroke, width }] of SHAPES[look].entries()) {
    if (!paths.has(d)) paths.set(d, new Path2D(d));
    const inks = [[index ? null : "paper", (width ?? 0) + 2], [stroke, width]];
    for (const [ink, thick] of inks) if (ink) { pen.strokeStyle = colour(ink); pen.lineWidth = thick; pen.stroke(paths.get(d)); }
    if (inside) { pen.fillStyle = colour(inside); pen.fill(paths.get(d)); }
  }
  pen.restore();
}

const cut = new Map();
const TAIL = 9; // characters of a name that stay

/** A name that fits a width, cut in its middle: names of one kind differ at their ends. */
function fitted(pen, text, font, width) {
  const key = `${Math.floor(width)}|${text}`;
  if (!cut.has(key)) {
    if (cut.size > 5000) cut.clear();
    pen.font = font;
    let shown = text;
    for (let length = text.length - TAIL - 1; length > 0 && pen.measureText(shown).width > width; length--) shown = `${text.slice(0, length)}…${text.slice(-TAIL)}`;
    cut.set(key, shown);
  }
  return cut.get(key);
}

function name(pen, size, lane, top) {
  const font = "12px system-ui, sans-serif";
  const y = size.narrow ? top + 9 : top + size.lane / 2 + 1;
  const text = fitted(pen, lane.name, font, size.narrow ? size.width - 20 : size.left - 22);
  rect(pen, colour("paper"), 0, top + 1, size.narrow ? 10 + 6.5 * text.length : size.left, size.narrow ? 15 : size.lane);
  write(pen, text, 8, y, lane.there ? "ink" : "dim", "left", font);
}

function head(pen, timeline, axis, visible) {
  const { size, data, chosen } = timeline;
  const bottom = headOf(data);
  const bold = "600 11px system-ui, sans-serif";
  rect(pen, colour("paper"), 0, 0, size.width, GEOMETRY.axis);
  rect(pen, colour("paper"), 0, 0, size.left, bottom);
  put(pen, null, 0, GEOMETRY.findings, size.width, bottom - GEOMETRY.findings);
  overview(pen, timeline);
  for (const tick of axis.ticks()) {
    const x = axis.x(tick.at);
    if (x > size.left + 22 && x < size.width - 26) write(pen, tick.label, x, GEOMETRY.overview + 12, "dim");
  }
  const rows = [["Whole time", GEOMETRY.overview / 2], ["Findings", GEOMETRY.findings - 11], ["State, generation", GEOMETRY.states - 11], ["Rebalances", GEOMETRY.rebalances - 13], ...(data.lag.length ? [["Lag", bottom - GEOMETRY.lag / 2]] : [])];
  if (!size.narrow) for (const [text, y] of rows) write(pen, text, size.left - 8, y, "dim", "right", bold);
  within(pen, [size.left, GEOMETRY.axis, axis.width + 10, bottom], () => {
    for (const row of stateSpans(data)) if (row.to >= axis.from && row.from <= axis.to) stateSpan(pen, axis, row);
    for (const row of visible) {
      const [x, width] = [axis.near(row.started_at), Math.max(axis.near(row.ended_at) - axis.near(row.started_at), 2)];
      span(pen, row.look, x, GEOMETRY.states + 3.5, width, 19);
      put(pen, { kind: "rebalance", row }, x, GEOMETRY.states, width, GEOMETRY.head - GEOMETRY.states, NEAR);
      if (row.id === chosen?.id) frame(pen, x - 2, GEOMETRY.states + 1.5, width + 4, 23);
    }
    for (const row of data.findings) if (shown(axis, row.occurred_at)) mark(pen, row.severity.toLowerCase(), axis.x(row.occurred_at), GEOMETRY.findings - 10, 0.85, { kind: "finding", row });
    if (data.lag.length) lag(pen, timeline, axis, bottom - 4);
  });
  line(pen, colour("rule"), 1, [0, bottom - 0.5], [size.width, bottom - 0.5]);
}

/** The lag of the group: each poll holds until the next one. */
function lag(pen, timeline, axis, bottom) {
  const all = lagOf(timeline);
  const rows = all.filter((row, index) => row.at <= axis.to && (all[index + 1]?.at ?? row.at) >= axis.from);
  if (!rows.length) return;
  const largest = rows.reduce((most, row) => (row.lag > most.lag ? row : most));
  const height = GEOMETRY.lag - 18;
  const y = (row) => bottom - (row.lag * height) / Math.max(largest.lag, 1);
  const until = (row) => axis.near(all[all.indexOf(row) + 1]?.at ?? row.at);
  for (const row of rows) put(pen, { kind: "lag", row }, axis.near(row.at), bottom + 4 - GEOMETRY.lag, until(row) - axis.near(row.at), GEOMETRY.lag);
  const steps = rows.flatMap((row, index) => (index ? [[axis.near(row.at), y(rows[index - 1])]] : []).concat([[axis.near(row.at), y(row)]]));
  steps.push([until(rows.at(-1)), y(rows.at(-1))]);
  line(pen, edge("lag"), 1, ...steps);
  pen.lineTo(steps.at(-1)[0], bottom);
  pen.lineTo(steps[0][0], bottom);
  pen.globalAlpha = 0.75;
  pen.fillStyle = fill(pen, "lag");
  pen.fill();
  pen.globalAlpha = 1;
  const text = `${timeline.size.narrow ? "lag " : ""}${count(largest.lag)}`;
  const room = 4 + 3.5 * text.length;
  label(pen, text, Math.min(Math.max(axis.x(largest.at), axis.left + room), axis.left + axis.width - room), y(largest) - 7);
}

function stateSpan(pen, axis, row) {
  const { look, generation } = row;
  const [x, end] = [axis.near(row.from), axis.near(row.to)];
  put(pen, { kind: "state", row }, x, GEOMETRY.findings, end - x, GEOMETRY.states - GEOMETRY.findings);
  span(pen, look, x, GEOMETRY.findings + 2.5, Math.max(end - x, 0.7), 17);
  if (look !== "stable" || generation === null || end - x <= 16) return;
  const text = end - x > 100 ? `Stable, generation ${generation}` : String(generation);
  const middle = (Math.max(x, axis.left) + Math.min(end, axis.left + axis.width)) / 2;
  if (text.length * 6 < end - x) write(pen, text, middle, GEOMETRY.findings + 11.5, "ink");
}

/** The whole time, and which part of it is shown. */
function overview(pen, timeline) {
  const { size, data, view } = timeline;
  const [axis, height] = [timeline.axisOf(timeline.whole), GEOMETRY.overview - 8];
  rect(pen, colour("raised"), size.left, 4, axis.width, height);
  for (const row of data.rebalances) rect(pen, fill(pen, row.look), axis.x(row.started_at), 7, Math.max((row.ended_at - row.started_at) * axis.scale, 1), 10);
  for (const row of data.findings) rect(pen, colour(row.severity.toLowerCase()), axis.x(row.occurred_at) - 1, 19, 2, 5);
  const [x, end] = [axis.x(view.from), axis.x(view.to)];
  rect(pen, colour("shade"), size.left, 4, Math.max(x - size.left, 0), height);
  rect(pen, colour("shade"), end, 4, Math.max(size.left + axis.width - end, 0), height);
  frame(pen, x, 4, Math.max(end - x, 3), height);
}
