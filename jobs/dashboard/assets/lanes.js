// One lane for each client of a group with all its memberships.
import { printable } from "./dom.js";
import { shortMember } from "./format.js";

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
