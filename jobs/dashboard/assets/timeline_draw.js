// Draws the timeline: everything that is visible, back to front.
import { Axis } from "./axis.js";
import { duration } from "./format.js";
import { lookOfEnd } from "./lanes.js";
import { colour, fill, label, SHAPES, span, swatch } from "./looks.js";

/** Heights in pixels, from the top: the overview, the axis, findings, states, rebalances, lanes. */
export const GEOMETRY = { overview: 30, axis: 50, findings: 72, states: 94, rebalances: 120, head: 126, lane: 22, narrowLane: 36, foot: 10 };

const STATES = { Stable: "stable", PreparingRebalance: "preparing", CompletingRebalance: "completing", Reconciling: "reconciling", Empty: "empty", Dead: "dead" };
const LETTERS = { preparing: "P", completing: "A", reconciling: "R", empty: "E", dead: "D" };
export const REBALANCE_LETTERS = { broker: "B", failed: "F", came: "J", changed: "C", startup: "S", unknown: "?" };

/** How a state is drawn; null: it is none that is known. */
export const stateSwatch = (state) => (STATES[state] ? swatch(STATES[state], LETTERS[STATES[state]]) : null);

/** The spans of the group's states: [{state, look, from, to, generation, row}]. */
export function stateSpans(data) {
  if (data.stateSpans) return data.stateSpans;
  const rows = data.states;
  const found = rows.length && rows[0].occurred_at > data.from ? [{ state: rows[0].from_state, from: data.from, to: rows[0].occurred_at, generation: null, row: null }] : [];
  rows.forEach((row, index) => found.push({ state: row.to_state, from: row.occurred_at, to: rows[index + 1]?.occurred_at ?? data.to, generation: row.generation, row }));
  data.stateSpans = found.filter((each) => each.to > each.from && STATES[each.state]).map((each) => ({ ...each, look: STATES[each.state] }));
  return data.stateSpans;
}

/** Draws the picture. Returns the names of the looks that are in it. */
export function draw(pen, timeline) {
  const { size, data, box, canvas } = timeline;
  pen.looks = new Set();
  pen.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
  pen.fillStyle = colour("paper");
  pen.fillRect(0, 0, size.width, size.height);
  const axis = timeline.axis;
  const visible = data.rebalances.filter((row) => row.ended_at >= axis.from && row.started_at <= axis.to);
  bands(pen, size, axis, data.away);
  grid(pen, size, axis);
  shades(pen, timeline, axis, visible);
  lanes(pen, timeline, axis);
  head(pen, timeline, axis, visible);
  if (document.activeElement === canvas) { pen.strokeStyle = colour("link"); pen.lineWidth = 2; pen.strokeRect(1, 1, size.width - 2, size.height - 2); }
  if (data.lanes.length * size.lane > size.height - GEOMETRY.head) scrollHint(pen, size, box);
  return pen.looks;
}

function bands(pen, size, axis, away) {
  for (const band of away) {
    const [x, end] = [axis.near(band.from), axis.near(band.to)];
    if (band.to < axis.from || band.from > axis.to) continue;
    pen.fillStyle = fill(pen, "away");
    pen.fillRect(x, GEOMETRY.axis, Math.max(end - x, 2), size.height);
  }
}

function grid(pen, size, axis) {
  pen.strokeStyle = colour("rule");
  pen.lineWidth = 1;
  pen.beginPath();
  for (const tick of axis.ticks()) {
    const x = Math.round(axis.x(tick.at)) + 0.5;
    pen.moveTo(x, GEOMETRY.axis - 4);
    pen.lineTo(x, size.height);
  }
  pen.stroke();
}

/** Rebalances as shades through all lanes. */
function shades(pen, timeline, axis, visible) {
  const { size, chosen, hovered } = timeline;
  let drawn = -1;
  for (const row of visible) {
    const x = axis.near(row.started_at);
    const end = Math.max(axis.near(row.ended_at), x + 1);
    const bright = row.id === chosen?.id || row === hovered?.row;
    if (end <= drawn + 0.5 && !bright) continue;
    pen.fillStyle = bright ? colour("focus") : colour("shade");
    pen.fillRect(Math.max(x, bright ? x : drawn), GEOMETRY.rebalances, end - Math.max(x, bright ? x : drawn), size.height);
    drawn = Math.max(drawn, end);
  }
}

function lanes(pen, timeline, axis) {
  const { size, data, box } = timeline;
  const first = Math.max(0, Math.floor(box.scrollTop / size.lane));
  const last = Math.min(data.lanes.length, Math.ceil((box.scrollTop + size.height - GEOMETRY.head) / size.lane) + 1);
  pen.save();
  pen.beginPath();
  pen.rect(0, GEOMETRY.head, size.width, size.height);
  pen.clip();
  for (let index = first; index < last; index++) {
    const top = GEOMETRY.head + index * size.lane - box.scrollTop;
    lane(pen, timeline, axis, data.lanes[index], top);
  }
  pen.restore();
}

function lane(pen, timeline, axis, lane, top) {
  const { size, hovered } = timeline;
  const height = size.narrow ? 14 : 13;
  const y = top + size.lane - height - (size.narrow ? 4 : 4.5);
  if (hovered?.lane === lane) { pen.fillStyle = colour("focus"); pen.fillRect(0, top, size.left - 4, size.lane); }
  pen.save();
  pen.beginPath();
  pen.rect(size.left, top, axis.width + 10, size.lane);
  pen.clip();
  for (const row of lane.spans) membership(pen, axis, row, y, height, timeline.data);
  for (const row of lane.beats) beats(pen, axis, row, y + height - 3);
  for (const row of lane.waits) wait(pen, axis, row, y, height);
  for (const row of lane.silences) {
    const [x, end] = [axis.near(row.silent_from), axis.near(row.silent_until)];
    if (end < size.left || x > size.width) continue;
    pen.fillStyle = fill(pen, "silent");
    pen.fillRect(x, y + 2, Math.max(end - x, 1), height - 4);
    if (end - x > 64) label(pen, `silent ${duration(row.silent_ms)}`, (Math.max(x, size.left) + Math.min(end, size.width)) / 2, y + height / 2);
  }
  for (const row of lane.blames) if (shown(axis, row.started_at)) blame(pen, axis.x(row.started_at), y, height, row.look);
  for (const row of lane.spans) ends(pen, axis, row, y + height / 2);
  pen.restore();
  name(pen, size, lane, top);
}

function membership(pen, axis, row, y, height, data) {
  const x = axis.near(row.joined_at ?? data.from);
  const end = axis.near(row.ended_at ?? data.to);
  if (end < axis.left || x > axis.left + axis.width + 10) return;
  pen.fillStyle = fill(pen, "member");
  pen.fillRect(x, y, Math.max(end - x, 1), height);
  if (end - x > 4) { pen.strokeStyle = colour("edge"); pen.lineWidth = 0.6; pen.strokeRect(x, y, end - x, height); }
}

/** Heartbeats: a tick each where there is room, else a line. */
function beats(pen, axis, row, y) {
  const [x, end] = [axis.near(row.first_at), axis.near(row.last_at)];
  pen.fillStyle = colour("edge");
  const count = row.beats?.length ?? row.beat_count ?? 1;
  const dense = count > 1 && (axis.x(row.last_at) - axis.x(row.first_at)) / count < 5;
  if (dense || (count > 1 && !row.beats)) pen.fillRect(x, y + 1, Math.max(end - x, 1), 1);
  else for (const beat of row.beats ?? [0]) { const at = axis.x(row.first_at + beat); if (at > axis.left && at < axis.left + axis.width) pen.fillRect(at, y, 1, 3); }
}

/** A JoinGroup or SyncGroup that waited for its answer. */
function wait(pen, axis, row, y, height) {
  const look = { JOIN_GROUP: "preparing", SYNC_GROUP: "completing" }[row.kind];
  const [x, end] = [axis.near(row.received_at), axis.near(row.occurred_at)];
  if (row.error_code && row.error_code !== 27 && row.error_code !== 79) {
    pen.fillStyle = colour("error");
    pen.fillRect(end - 1, y - 2, 2, height + 4);
  } else if (look && end - x > 0.7) {
    span(pen, look, x, y + 1, end - x, height - 4, end - x > 30 ? { preparing: "P", completing: "A" }[look] : "");
  }
}

/** The culprit of a rebalance: a flag where it began. */
function blame(pen, x, y, height, look) {
  pen.strokeStyle = colour("ink");
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(x, y - 3);
  pen.lineTo(x, y + height);
  pen.stroke();
  pen.fillStyle = fill(pen, look);
  pen.beginPath();
  pen.moveTo(x, y - 4);
  pen.lineTo(x + 9, y - 0.5);
  pen.lineTo(x, y + 3);
  pen.closePath();
  pen.fill();
  pen.stroke();
}

function ends(pen, axis, row, y) {
  if (row.joined_at !== null && shown(axis, row.joined_at)) mark(pen, "joined", axis.x(row.joined_at) + 4, y, 0.55);
  if (row.ended_at !== null && shown(axis, row.ended_at)) mark(pen, lookOfEnd(row.end_kind), axis.x(row.ended_at), y, 0.8);
}

/** Whether a mark at this time is in the picture. */
const shown = (axis, at) => Math.abs(axis.x(at) - axis.left - axis.width / 2) < axis.width / 2 + 8;

const paths = new Map();

/** A symbol, as in looks.js, with an edge that parts it from what is behind. */
export function mark(pen, look, x, y, scale = 1) {
  pen.looks.add(look);
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

/** Text that fits a width. */
function fitted(pen, text, width) {
  const key = `${pen.font}|${Math.floor(width)}|${text}`;
  if (!cut.has(key)) {
    if (cut.size > 5000) cut.clear();
    let shown = text;
    for (let length = text.length - 1; length > 0 && pen.measureText(shown).width > width; length--) shown = text.slice(0, length).trimEnd() + "…";
    cut.set(key, shown);
  }
  return cut.get(key);
}

function name(pen, size, lane, top) {
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  if (!size.narrow) { pen.fillStyle = colour("paper"); pen.fillRect(0, top, size.left, size.lane); }
  const y = size.narrow ? top + 9 : top + size.lane / 2 + 1;
  pen.font = "12px system-ui, sans-serif";
  const room = size.narrow ? size.width - 90 : size.left - (lane.note ? 78 : 22);
  const shown = fitted(pen, lane.name, room);
  pen.fillStyle = colour(lane.there ? "ink" : "dim");
  const left = 8;
  if (size.narrow) { pen.lineWidth = 3; pen.strokeStyle = colour("paper"); pen.strokeText(shown, left, y); }
  pen.fillText(shown, left, y);
  if (lane.note) {
    pen.font = "10px ui-monospace, Menlo, Consolas, monospace";
    pen.fillStyle = colour("dim");
    pen.textAlign = "right";
    pen.fillText(fitted(pen, lane.note, 70), size.narrow ? size.width - 10 : size.left - 8, y);
  }
}

function head(pen, timeline, axis, visible) {
  const { size, data, chosen } = timeline;
  pen.fillStyle = colour("paper");
  pen.fillRect(0, 0, size.width, GEOMETRY.axis);
  pen.fillRect(0, 0, size.left, GEOMETRY.head);
  overview(pen, timeline);
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  pen.fillStyle = colour("dim");
  for (const tick of axis.ticks()) {
    const x = axis.x(tick.at);
    if (x > size.left + 22 && x < size.width - 26) pen.fillText(tick.label, x, GEOMETRY.overview + 12);
  }
  if (!size.narrow) {
    pen.textAlign = "right";
    pen.font = "600 11px system-ui, sans-serif";
    for (const [text, y] of [["Findings", GEOMETRY.findings - 11], ["State, generation", GEOMETRY.states - 11], ["Rebalances", GEOMETRY.rebalances - 13]]) pen.fillText(text, size.left - 8, y);
  }
  pen.save();
  pen.beginPath();
  pen.rect(size.left, GEOMETRY.axis, axis.width + 10, GEOMETRY.head);
  pen.clip();
  for (const each of stateSpans(data)) {
    if (each.to < axis.from || each.from > axis.to) continue;
    const [x, end] = [axis.near(each.from), axis.near(each.to)];
    span(pen, each.look, x, GEOMETRY.findings + 2.5, Math.max(end - x, 0.7), 17, LETTERS[each.look]);
    if (each.look === "stable" && each.generation !== null && end - x > 16) {
      pen.font = "11px system-ui, sans-serif";
      pen.textAlign = "center";
      pen.fillStyle = colour("ink");
      const text = end - x > 100 ? `Stable, generation ${each.generation}` : String(each.generation);
      if (pen.measureText(text).width < end - x - 2) pen.fillText(text, (Math.max(x, size.left) + Math.min(end, size.width)) / 2, GEOMETRY.findings + 11.5);
    }
  }
  for (const row of visible) {
    const [x, end] = [axis.near(row.started_at), axis.near(row.ended_at)];
    const bright = row.id === chosen?.id;
    span(pen, row.look, x, GEOMETRY.states + 3.5, Math.max(end - x, 2), 19, REBALANCE_LETTERS[row.look]);
    if (bright) { pen.strokeStyle = colour("link"); pen.lineWidth = 2.5; pen.strokeRect(x - 2, GEOMETRY.states + 1.5, Math.max(end - x, 2) + 4, 23); }
  }
  for (const row of data.findings) {
    if (shown(axis, row.occurred_at)) mark(pen, row.severity.toLowerCase(), axis.x(row.occurred_at), GEOMETRY.findings - 10, 0.85);
  }
  pen.restore();
  pen.strokeStyle = colour("rule");
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(0, GEOMETRY.head - 0.5);
  pen.lineTo(size.width, GEOMETRY.head - 0.5);
  pen.stroke();
}

/** The whole time, and which part of it is shown. */
function overview(pen, timeline) {
  const { size, data, whole, view } = timeline;
  const axis = new Axis(whole.from, whole.to, size.left, size.width - size.left - 10);
  pen.fillStyle = colour("raised");
  pen.fillRect(size.left, 4, axis.width, GEOMETRY.overview - 8);
  for (const row of data.rebalances) {
    pen.fillStyle = fill(pen, row.look);
    pen.fillRect(axis.x(row.started_at), 7, Math.max((row.ended_at - row.started_at) * axis.scale, 1), 10);
  }
  for (const row of data.findings) {
    pen.fillStyle = colour(row.severity.toLowerCase());
    pen.fillRect(axis.x(row.occurred_at) - 1, 19, 2, 5);
  }
  const [x, end] = [axis.x(view.from), axis.x(view.to)];
  pen.fillStyle = colour("shade");
  pen.fillRect(size.left, 4, Math.max(x - size.left, 0), GEOMETRY.overview - 8);
  pen.fillRect(end, 4, Math.max(size.left + axis.width - end, 0), GEOMETRY.overview - 8);
  pen.strokeStyle = colour("link");
  pen.lineWidth = 1.5;
  pen.strokeRect(x, 4, Math.max(end - x, 3), GEOMETRY.overview - 8);
  if (!size.narrow) {
    pen.font = "600 11px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillStyle = colour("dim");
    pen.fillText("Whole time", size.left - 8, GEOMETRY.overview / 2);
  }
}

function scrollHint(pen, size, box) {
  const room = size.height - GEOMETRY.head;
  const share = room / (box.scrollHeight - GEOMETRY.head);
  pen.fillStyle = colour("dim");
  pen.globalAlpha = 0.5;
  pen.fillRect(size.width - 5, GEOMETRY.head + (box.scrollTop / box.scrollHeight) * room, 4, Math.max(room * share, 18));
  pen.globalAlpha = 1;
}
