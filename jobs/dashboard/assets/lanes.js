// One lane for each member, or for each client with all its memberships. Lanes are in the order of names, then of time.
import { printable } from "./dom.js";
import { shortMember } from "./format.js";

const ENDS = { LEFT: "left", REPLACED: "left", GROUP_GONE: "gone", UNKNOWN: "gone" };

/** The look of the end of a membership (looks.js). */
export const lookOfEnd = (kind) => ENDS[kind] ?? "removed";

const collator = new Intl.Collator("en", { numeric: true });

/**
 * The lanes of a group. memberships: rows of the question `members`; rebalances: rows with culprits.
 * Each lane: {key, name, note, there, spans, silences, blames, waits, beats}.
 */
export function lanesOf(memberships, rebalances, byClient) {
  const lanes = new Map();
  const ofMember = new Map();
  for (const row of memberships) {
    const { name } = row;
    const key = byClient && name !== "-" ? name : row.member_id;
    if (!lanes.has(key)) {
      const note = byClient ? "" : shortMember(row.member_id);
      lanes.set(key, { key, name: name === "-" ? printable(note || row.member_id, 60) : name, note: name === "-" ? "" : note, there: false, first: Infinity, spans: [], silences: [], blames: [], waits: [], beats: [] });
    }
    const lane = lanes.get(key);
    lane.there ||= row.ended_at === null;
    lane.first = Math.min(lane.first, row.joined_at ?? row.ended_at ?? 0);
    lane.spans.push(row);
    ofMember.set(row.member_id, lane);
  }
  for (const row of rebalances) {
    if (!row.startup && row.culprit_member_id) ofMember.get(row.culprit_member_id)?.blames.push(row);
  }
  const ordered = [...lanes.values()].sort((a, b) => collator.compare(a.name, b.name) || a.first - b.first || collator.compare(a.key, b.key));
  for (const lane of ordered) lane.spans.sort((a, b) => (a.joined_at ?? 0) - (b.joined_at ?? 0));
  return { lanes: ordered, ofMember };
}

/** Whether clients come back under new member ids. Two memberships that share most of their time are two processes: each gets a lane. */
export function idsChange(memberships, from, to) {
  const time = (row) => ({ from: row.joined_at ?? from, to: row.ended_at ?? to });
  const pairs = lanesOf(memberships, [], true).lanes.flatMap(({ spans }) => spans.slice(1).map((row, index) => [time(spans[index]), time(row)]));
  return pairs.length > 0 && pairs.every(([a, b]) => 2 * (Math.min(a.to, b.to) - b.from) <= Math.min(a.to - a.from, b.to - b.from));
}

/** Puts rows into the lanes of their members. what: silences, waits (requests) or beats. */
export function fillLanes({ lanes, ofMember }, what, rows) {
  for (const lane of lanes) lane[what] = [];
  for (const row of rows) ofMember.get(row.member_id)?.[what].push(row);
}
