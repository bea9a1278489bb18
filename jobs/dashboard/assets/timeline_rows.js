// What a timeline shows: one lane for each client of a group with all its memberships, what is under the pointer, and what is said about it.
import { printable } from "./dom.js";
import { clock, count, duration, instant, many, shortMember } from "./format.js";

const ENDS = { LEFT: "left", REPLACED: "left", GROUP_GONE: "gone", UNKNOWN: "gone" };

/** The look of the end of a membership (looks.js). */
export const lookOfEnd = (kind) => ENDS[kind] ?? "removed";

const collator = new Intl.Collator("en", { numeric: true });

/**
 * The lanes of a group by name, {name, there, spans, silences, blames, waits, beats} each: memberships of one client that follow each other
 * share a lane; two that share most of their time are two processes. rebalances: with culprits; from, to: the time of the log.
 */
export function lanesOf(memberships, rebalances, from, to) {
  const lanes = [];
  const ofMember = new Map();
  const began = (row) => row.joined_at ?? from;
  const ended = (row) => row.ended_at ?? to;
  const follows = (a, b) => 2 * (Math.min(ended(a), ended(b)) - began(b)) <= Math.min(ended(a) - began(a), ended(b) - began(b));
  const named = Map.groupBy(memberships, (row) => (row.name === "-" ? printable(shortMember(row.member_id) || row.member_id, 60) : row.name));
  for (const [name, rows] of [...named].sort(([a], [b]) => collator.compare(a, b))) {
    const its = [];
    for (const row of rows.toSorted((a, b) => began(a) - began(b))) {
      let lane = its.find((each) => follows(each.spans.at(-1), row));
      if (!lane) its.push(lane = { name, there: false, spans: [], silences: [], blames: [], waits: [], beats: [] });
      lane.there ||= row.ended_at === null;
      lane.spans.push(row);
      ofMember.set(row.member_id, lane);
    }
    if (its.length > 1) for (const lane of its) lane.name += ` ${shortMember(lane.spans.at(-1).member_id)}`;
    lanes.push(...its);
  }
  for (const row of rebalances) {
    if (!row.startup && row.culprit_member_id) ofMember.get(row.culprit_member_id)?.blames.push(row);
  }
  return { lanes, ofMember };
}

/** Puts rows into the lanes of their members. what: silences, waits (requests) or beats. */
export function fillLanes({ lanes, ofMember }, what, rows) {
  for (const lane of lanes) lane[what] = [];
  for (const row of rows) ofMember.get(row.member_id)?.[what].push(row);
}

/** What is drawn at a place, {kind, row, lane}: of what lies on top, the nearest. null if there is nothing. places: of timeline_draw.js. */
export function whatIsAt(places, x, y) {
  const far = (each) => Math.max(each.x - x, x - each.x - each.width, 0);
  const found = places.filter((each) => y >= each.y && y <= each.y + each.height && far(each) <= each.room);
  const top = found.at(-1);
  if (!top?.what) return null;
  const beside = found.filter((each) => each.what?.kind === top.what.kind && each.y === top.y && each.room === top.room);
  return beside.sort((a, b) => far(a) - far(b) || a.width - b.width)[0].what;
}

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
