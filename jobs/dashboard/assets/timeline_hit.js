// What is under the pointer, and what is said about it.
import { printable } from "./dom.js";
import { clock, count, duration, instant, many, shortMember } from "./format.js";
import { GEOMETRY, headOf, lagOf, stateSpans } from "./timeline_draw.js";

const NEAR = 6; // pixels

/** {kind, row, lane}; null if there is nothing. */
export function whatIsAt(timeline, x, y) {
  const { size, data, box } = timeline;
  const axis = timeline.axis;
  const at = axis.at(x);
  const near = NEAR / axis.scale;
  const within = (from, to, room = near / 2) => at >= from - room && at <= to + room;
  const nearest = (rows, time) => rows.filter((row) => Math.abs(time(row) - at) <= near * 1.4).sort((a, b) => Math.abs(time(a) - at) - Math.abs(time(b) - at))[0];
  const head = headOf(data);
  if (x >= size.left - NEAR && y < head) {
    if (y < GEOMETRY.axis) return null;
    if (y < GEOMETRY.findings) { const row = nearest(data.findings, (each) => each.occurred_at); return row ? { kind: "finding", row } : bandAt(data, at); }
    if (y < GEOMETRY.states) { const row = stateSpans(data).find((each) => within(each.from, each.to, 0)); return row ? { kind: "state", row } : null; }
    if (y >= GEOMETRY.head) { const row = lagOf(timeline).findLast((each) => each.at <= at); return row ? { kind: "lag", row } : null; }
    const row = rebalanceAt(data, at, near);
    return row ? { kind: "rebalance", row } : null;
  }
  const lane = data.lanes[Math.floor((y - head + box.scrollTop) / size.lane)];
  if (y < head || !lane) return null;
  if (x < size.left) return { kind: "lane", row: lane, lane };
  const end = nearest(lane.spans.filter((row) => row.ended_at !== null), (row) => row.ended_at);
  if (end) return { kind: "membership", row: end, lane };
  const blame = nearest(lane.blames, (row) => row.started_at);
  if (blame) return { kind: "rebalance", row: blame, lane };
  const silence = lane.silences.find((row) => within(row.silent_from, row.silent_until, 0));
  if (silence) return { kind: "silence", row: silence, lane };
  const wait = lane.waits.find((row) => within(row.received_at, row.occurred_at, 1 / axis.scale));
  if (wait) return { kind: "wait", row: wait, lane };
  const row = lane.spans.find((each) => within(each.joined_at ?? -Infinity, each.ended_at ?? Infinity, near / 2));
  if (row) return { kind: "membership", row, lane };
  const behind = rebalanceAt(data, at, 0);
  return behind ? { kind: "rebalance", row: behind, lane } : bandAt(data, at);
}

function bandAt(data, at) {
  const row = data.away.find((band) => at >= band.from && at <= band.to);
  return row ? { kind: "away", row } : null;
}

function rebalanceAt(data, at, room) {
  const found = data.rebalances.filter((row) => at >= row.started_at - room && at <= row.ended_at + room);
  return found.sort((a, b) => distance(a, at) - distance(b, at) || a.ended_at - a.started_at - (b.ended_at - b.started_at))[0];
}

const distance = (row, at) => Math.max(row.started_at - at, at - row.ended_at, 0);

/** Whether a rebalance has not ended when the log does. */
export const isOpen = (row) => row.outcome === "OPEN";

const REQUESTS = { JOIN_GROUP: "JoinGroup", SYNC_GROUP: "SyncGroup", LEAVE_GROUP: "LeaveGroup", OFFSET_FETCH: "OffsetFetch", HEARTBEAT: "Heartbeat", CONSUMER_GROUP_HEARTBEAT: "ConsumerGroupHeartbeat", OFFSET_COMMIT: "OffsetCommit", TXN_OFFSET_COMMIT: "TxnOffsetCommit" };

/** Kafka's name of a request. */
export const requestName = (kind) => REQUESTS[kind] ?? kind;

/** Lines that say what something is. */
export function tipOf({ kind, row, lane }) {
  const name = lane && kind !== "lane" ? [lane.name] : [];
  switch (kind) {
    case "rebalance": return [
      `${row.title} (${row.called})`,
      `Rebalance ${instant(row.started_at)}, ${duration(row.total_ms)}${row.generation === null ? "" : `, generation ${row.generation}`}, ${row.outcome}`,
      row.unavailable_partition_ms === null ? null : `${duration(row.unavailable_partition_ms)} of unowned partition time (sum)`,
      row.in_records,
      row.reason ? printable(row.reason, 160) : null,
      row.note,
    ].filter(Boolean);
    case "finding": return [`${row.severity} ${row.code}`, `${instant(row.occurred_at)}  ${row.who}`, printable(row.message, 300)];
    case "state": return [`${row.state}${row.generation === null ? "" : `, generation ${row.generation}`}`, `from ${instant(row.from)}, ${duration(row.to - row.from)}`, row.row ? `because of ${printable(row.row.trigger, 60)}` : null].filter(Boolean);
    case "silence": return [...name, `No sign of life for ${duration(row.silent_ms)}, from ${clock(row.silent_from)} to ${clock(row.silent_until)}`, row.expired ? "Then its session ran out" : `${row.used_percent} % of its session timeout${row.session_timeout_ms ? ` of ${duration(row.session_timeout_ms)}` : ""}${row.expired === null ? ": it began anew" : ""}`];
    case "wait": return [...name, `${requestName(row.kind)} at ${clock(row.received_at)}, answered after ${duration(row.occurred_at - row.received_at)}`, row.error_code ? `with error ${row.error_code}` : null, row.reason ? printable(row.reason, 160) : null].filter(Boolean);
    case "membership": return [...name, `Member ${shortMember(row.member_id)}: ${row.joined_at === null ? "from before" : `joined ${instant(row.joined_at)}`}`, row.ended_at === null ? "in the group now" : `${row.end_kind} ${instant(row.ended_at)}`,
      row.heartbeats === null ? null : `${many(row.heartbeats, "heartbeat")}${row.longest_gap_ms === null ? "" : `, at most ${duration(row.longest_gap_ms)} between two signs of life`}`,
      row.session_timeout_ms ? `session.timeout.ms ${count(row.session_timeout_ms)}` : null, row.software ? printable(row.software, 80) : null].filter(Boolean);
    case "lane": return [row.name, `${many(row.spans.length, "membership")}, ${row.there ? "in the group now" : "gone"}`, row.blames.length ? `blamed for ${many(row.blames.length, "rebalance")} below` : null].filter(Boolean);
    case "lag": return [`Lag ${many(row.lag, "record")}`, `from ${instant(row.at)}, as polled`];
    case "away": return [row.text];
    default: return [];
  }
}

/** What a screen reader says in the place of the picture. */
export function spoken(data) {
  const marks = data.findings.slice(-3).map((row) => `${row.code} at ${clock(row.occurred_at)}`);
  return `Timeline: ${many(data.rebalances.length, "rebalance")}, ${many(data.findings.length, "finding")}, ${many(data.lanes.length, "lane")}${marks.length ? `; the newest findings: ${marks.join(", ")}` : ""}${data.lag.length ? `; lag at most ${many(Math.max(...data.lag.map((row) => row.lag)), "record")}` : ""}`;
}
