// What the others waited for in a rebalance, as far as lines show it: who, from when to when, and what that member did meanwhile.
import { duration } from "./format.js";
import { isOpen } from "./timeline_hit.js";

const WAITED = 1000; // ms: shorter waits are those of a healthy group
const TELLING = 5000; // ms: in a shorter time a healthy member may send no heartbeat
const SAME = 100; // ms: members that were removed at one timeout
const MISSING = { JOIN: "did not rejoin for", SYNC: "sent no SyncGroup for", RECONCILE: "did not reach the epoch for" };
const ASSIGNING = "computing the assignment";

/**
 * The waits, as {id, from, to, what, look, before}, and the ids of those who were waited for longest. `before`: the wait set the rebalance
 * off, and was over when it began. beats: rows of heartbeats.
 */
export function waitsOf(row, members, findings, rounds, beats) {
  const found = [];
  const byId = new Map(members.map((member) => [member.id, member]));
  const add = (id, from, to, what, look = "late", before = false) => { if (id && to > from && !found.some((wait) => wait.id === id && wait.from <= from && wait.to >= to)) found.push({ id, from, to, look, what: `${what} ${duration(to - from)}`, before }); };
  const signs = (id) => [...(byId.get(id)?.requests ?? []).map((request) => request.received_at), ...beats.filter((each) => each.member_id === id).flatMap((each) => each.beats?.map((beat) => each.first_at + beat) ?? [each.first_at, each.last_at])].sort((a, b) => a - b);
  const missing = (id, from, to, alive, unknown) => {
    const inside = signs(id).filter((at) => at > from && at < to - 1);
    const gap = Math.max(...[...inside, to].map((at, index) => at - (inside[index - 1] ?? from)));
    const tells = to - from >= TELLING && members.some((member) => member.requests.length);
    if (tells && !inside.length) add(id, from, to, "no heartbeat for", "silent");
    else add(id, from, to, tells && 2 * gap <= to - from ? alive : unknown);
  };
  for (const each of findings) {
    const { silent_ms: silent, session_timeout_ms: session, poll_gap_ms: gap, max_poll_interval_ms: limit, rebalance_timeout_ms: timeout } = each.details ?? {};
    const at = each.occurred_at;
    if (at > row.ended_at + SAME || (at < row.started_at - SAME && each.id !== row.finding_id)) continue; // of another rebalance
    const before = at <= row.started_at + SAME;
    if (each.code === "SESSION_TIMEOUT" || (each.code === "POLL_TIMEOUT" && silent)) add(each.member_id, at - (silent ?? session ?? 0), at, "silent", "silent", before);
    else if (each.code === "POLL_TIMEOUT" && limit) add(each.member_id, at - limit, at + Math.max((gap ?? 0) - limit, 0), "did not call poll() for", "silent", before);
    if (each.code === "REBALANCE_TIMEOUT" && timeout) add(each.member_id, at - timeout, at, "did not give partitions up for");
    // A Java leader sends no heartbeat while it assigns. That it assigned is known once its SyncGroup comes, too late.
    if (each.code === "SYNC_TIMEOUT" && row.joined_at !== null) add(each.member_id, row.joined_at, at, each.details.leader && findings.some((other) => other.member_id === each.member_id && other.details?.api === "SYNC_GROUP") ? ASSIGNING : MISSING.SYNC);
  }
  for (const each of rounds.flatMap((round) => JSON.parse(round.revocations ?? "[]"))) add(each.member_id, each.told_at, each.ended_at ?? row.ended_at, `gave up ${each.partitions} partition${each.partitions === 1 ? "" : "s"} in`);
  if (row.assignment_ms >= WAITED) add(row.leader_id, row.joined_at, row.joined_at + row.assignment_ms, ASSIGNING);
  const late = findings.find((each) => each.id === row.finding_id && each.code === "SLOW_JOINER")?.details.waited_for ?? [row.slowest_member_id];
  for (const member of late.map((id) => byId.get(id)).filter((each) => each && !isOpen(row) && waitedFor(row, each))) {
    const to = member.back ?? Math.min(member.membership?.ended_at ?? Infinity, row.joined_at ?? row.ended_at);
    if (row.group_protocol === "consumer") missing(member.id, row.started_at, to, MISSING.RECONCILE, member.back === null ? MISSING.RECONCILE : "next heartbeat after");
    else missing(member.id, row.started_at, to, "no poll(), or in its revocation callback, for", member.back === null ? MISSING.JOIN : "rejoined after");
  }
  if (isOpen(row)) for (const id of row.awaited) add(id, row.started_at, row.started_at + row.total_ms, MISSING[row.waits_for] ?? "waited for");
  const length = (wait) => Math.min(wait.to, row.ended_at) - wait.from;
  const most = Math.max(WAITED, ...found.map(length)) - SAME;
  return { waits: found, awaited: new Set(isOpen(row) ? row.awaited : found.filter((wait) => length(wait) >= most).map((wait) => wait.id)) };
}

/** Whether the join phase ended with this member, and not soon after its start: else it was only the last of all. */
function waitedFor(row, member) {
  return member.back === null || (member.back - row.started_at >= WAITED && (row.joined_at === null || row.joined_at - member.back <= WAITED));
}
