// The waterfall of a rebalance: a row for the group and one for each member, with what it waited for, what the others waited for as far as lines
// show it, and what that member did meanwhile.
import { Axis, axisWithin, followPointer, labelsOf } from "./axis.js";
import { h } from "./dom.js";
import { clock, count, duration, shortMember } from "./format.js";
import { legend, looksIn, symbol } from "./looks.js";
import { isOpen, lookOfEnd, requestName } from "./timeline_rows.js";

const WAITED = 1000; // ms: shorter waits are those of a healthy group
const TELLING = 5000; // ms: in a shorter time a healthy member may send no heartbeat
const SAME = 100; // ms: members that were removed at one timeout
const MISSING = { JOIN: "did not rejoin for", SYNC: "sent no SyncGroup for", RECONCILE: "did not reach the epoch for" };
const ASSIGNING = "computing the assignment";
const ROWS = 150;
const narrow = matchMedia("(max-width: 720px)");
const DEPARTURES = new Set(["MEMBER_LEFT", "SESSION_TIMEOUT", "REBALANCE_TIMEOUT", "UNKNOWN"]); // the next heartbeat asks for their assignment
const RETRIES = new Set([0, 27, 79]); // answers after which a client goes on as it should: a rebalance is under way; here is your member id

/** What each member did in the rebalance, in the order in which they came back. */
export function membersOf(row, memberships, requests) {
  const members = new Map();
  const ofConnection = new Map(requests.filter((request) => request.member_id && request.connection).map((request) => [request.connection, request.member_id]));
  const get = (id) => {
    if (!members.has(id)) members.set(id, { id, name: "-", membership: null, requests: [], back: null });
    return members.get(id);
  };
  for (const each of memberships) Object.assign(get(each.member_id), { membership: each, name: each.name });
  for (const request of requests.filter((each) => each.source === "request")) {
    const id = request.member_id || ofConnection.get(request.connection);
    if (!id) continue;
    const member = get(id);
    if (member.name === "-") member.name = request.name;
    member.requests.push(request);
  }
  for (const id of [row.member_id, row.slowest_member_id, row.leader_id, row.first_fetch_member_id, ...(row.joined ?? []), ...(row.left ?? [])]) if (id) get(id);
  for (const member of members.values()) {
    const joins = member.requests.filter((request) => (request.kind === "JOIN_GROUP" && request.error_code !== 79) || (request.kind === "CONSUMER_GROUP_HEARTBEAT" && request.error_code === 0 && request.answer_generation >= (row.first_epoch ?? 0)));
    member.back = joins.find((request) => request.occurred_at >= row.started_at)?.received_at ?? null;
    member.was = member.membership !== null && (member.membership.joined_at === null || member.membership.joined_at < row.started_at - 1);
  }
  return [...members.values()].sort((a, b) => (a.back ?? Infinity) - (b.back ?? Infinity) || a.name.localeCompare(b.name, "en", { numeric: true }) || (a.id < b.id ? -1 : 1));
}

function tagsOf(row, member, awaited) {
  const id = member.id;
  const [longest] = member.waits.toSorted((a, b) => b.to - b.from - (a.to - a.from));
  return [
    awaited.has(id) && [longest?.before ? "" : "all waited for it", longest?.what].filter(Boolean).join(": "),
    row.culprit_member_id === id && !isOpen(row) && "to blame", row.member_id === id && (isOpen(row) || row.member_id !== row.culprit_member_id) && "began it",
    row.slowest_member_id === id && !awaited.has(id) && "last back", row.leader_id === id && "leader", row.first_fetch_member_id === id && row.first_fetch_ms > 1000 && "last to begin work",
    (row.joined ?? []).includes(id) && "came", (row.left ?? []).includes(id) && "went",
  ].filter(Boolean);
}

/**
 * The table, with the members that were waited for first. waiting: of waitsOf; bands: troubles of brokers; window: {from, to}.
 * picked(from, to): a time was dragged over.
 */
export function waterfall(row, rounds, members, { waits, awaited }, bands, window, all, showAll, picked) {
  const axis = new Axis(window.from, window.to, 0, 100);
  const ticks = axis.ticks(narrow.matches ? 30 : 16);
  for (const member of members) member.waits = waits.filter((wait) => wait.id === member.id);
  const ordered = [...members.filter((member) => awaited.has(member.id)), ...members.filter((member) => !awaited.has(member.id))];
  const shown = all ? ordered : ordered.slice(0, ROWS);
  const line = (name, note, bars, figure, look) => h("tr", { class: look }, h("th", { scope: "row" }, name, note), h("td", { class: "bars" }, backdrop(axis, ticks, bands), bars), h("td", { class: "n" }, figure));
  const tag = (text, index, member) => h("span", { class: index === 0 && awaited.has(member.id) ? "tag strong" : "tag" }, text);
  const body = [
    ...(rounds.length ? rounds.map((round) => line(`Epoch ${round.epoch}`, h("small", {}, round.cause), roundBars(axis, round, row, rounds), duration(round.reconciled_at === null ? null : round.reconciled_at - round.started_at), "group-row"))
      : [line("The group", null, phases(axis, row), duration(row.total_ms), "group-row")]),
    ...shown.map((member) => line(member.name, [" ", h("code", {}, shortMember(member.id)), tagsOf(row, member, awaited).map((text, index) => tag(text, index, member))],
      memberBars(axis, row, member), member.back === null ? "-" : duration(Math.max(member.back - row.started_at, 0)), awaited.has(member.id) ? "marked" : null)),
  ];
  const picture = h("div", { class: "lanes" }, h("table", { class: "waterfall" }, h("caption", { class: "sr" }, "What each member did in the rebalance, in the order in which they came back"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Member"), h("th", { scope: "col", class: "bars" }, h("span", { class: "sr" }, "Time"), labelsOf(axis, ticks)), h("th", { scope: "col", class: "n" }, "Back after"))),
    h("tbody", {}, body)));
  followPointer(picture, () => axisWithin(picture, "td.bars", window), picked);
  return [
    picture, legend(looksIn(picture)),
    members.length > shown.length ? h("p", { class: "note" }, `${count(shown.length)} of ${count(members.length)} members, those that came back first. `, h("button", { type: "button", onclick: showAll }, "Show all")) : null,
  ];
}

/** What is behind each lane: a line for each tick, a band for each trouble of a broker. */
export const backdrop = (axis, ticks, bands) => [ticks.map((tick) => h("i", { class: "tick", style: { left: `${axis.x(tick.at)}%` } })), bands.map((band) => bar(axis, band.from, band.to, "away", "", band.text))];

/** A span of a row, with its text where that has room. */
export function bar(axis, from, to, look, text, title) {
  const begin = Math.max(axis.x(from), 0);
  const end = Math.min(axis.x(to), 100);
  if (end < 0 || begin > 100) return null;
  const room = 1.3 + text.length * (narrow.matches ? 2 : 0.9); // percent of the width
  return h("span", { class: `wf look-${look}`, style: { left: `${begin}%`, width: `max(${Math.max(end - begin, 0)}%, 2px)` }, title, "data-from": from, "data-to": to }, text && end - begin > room ? h("b", {}, text) : h("span", { class: "sr" }, title));
}

export function point(axis, at, node, title) {
  const x = axis.x(at);
  if (x < -0.5 || x > 100.5) return null;
  return h("span", { class: "wf-mark", style: { left: `${x}%` }, title, "data-from": at, "data-to": at }, node, h("span", { class: "sr" }, title));
}

function phases(axis, row) {
  const joined = row.joined_at ?? row.ended_at;
  return [
    bar(axis, row.started_at, joined, "preparing", `join ${duration(row.join_ms ?? joined - row.started_at)}`, `PreparingRebalance: waits for members to join, ${duration(joined - row.started_at)} (${clock(row.started_at)} to ${clock(joined)})`),
    row.joined_at === null ? null : bar(axis, row.joined_at, row.ended_at, "completing", `sync ${duration(row.sync_ms ?? row.ended_at - row.joined_at)}`, `CompletingRebalance: waits for the assignment, ${duration(row.sync_ms ?? row.ended_at - row.joined_at)} (${clock(row.joined_at)} to ${clock(row.ended_at)})`),
    row.first_fetch_ms === null || row.first_fetch_ms === undefined ? null : bar(axis, row.ended_at, row.ended_at + row.first_fetch_ms, "target", `start ${duration(row.first_fetch_ms)}`, `Partitions are assigned; the last member asks for its offsets after ${duration(row.first_fetch_ms)}`),
  ];
}

/** A round whose target was never computed waits for that of a later round, and nobody gives anything up for it. */
function roundBars(axis, round, row, rounds) {
  const later = rounds.find((other) => other.epoch > round.epoch && other.computed_at !== null)?.computed_at ?? row.ended_at;
  const skipped = round.superseded && round.computed_at === null && row.interval_wait_ms !== null;
  const computed = round.computed_at ?? (skipped ? later : round.started_at);
  const end = round.reconciled_at ?? (round.superseded ? later : row.ended_at);
  const waits = row.interval_wait_ms > 0 && !DEPARTURES.has(round.cause);
  const took = duration(computed - round.started_at);
  return [
    computed <= round.started_at ? null : bar(axis, round.started_at, computed, waits ? "target" : "computing", waits ? "waits for the assignment interval" : "target",
      waits ? `Waits for the assignment interval, ${took}: no member delays the group` : `The target assignment is computed, ${took}`),
    skipped ? null : bar(axis, computed, end, "reconciling", round.superseded ? "superseded" : "reconcile", `Members give up and take partitions${round.superseded ? ", until the next round" : ""}: ${duration(end - computed)}`),
  ];
}

function memberBars(axis, row, member) {
  const parts = [];
  const told = member.waits.some((wait) => wait.from <= row.started_at && wait.to > row.started_at);
  if (!told && member.was && member.back !== null && member.back > row.started_at) {
    const what = row.group_protocol === "consumer" ? "before its next heartbeat" : "before it joined again";
    parts.push(bar(axis, row.started_at, member.back, "late", duration(member.back - row.started_at), `${duration(member.back - row.started_at)} ${what} (${clock(member.back)})`));
  } else if (!member.waits.length && member.was && member.back === null && (row.left ?? []).includes(member.id)) {
    parts.push(bar(axis, row.started_at, member.membership.ended_at ?? row.ended_at, "late", "did not come back", "It did not come back"));
  }
  parts.push(...member.waits.map((wait) => bar(axis, wait.from, wait.to, wait.look, wait.what, `${wait.what}, ${clock(wait.from)} to ${clock(wait.to)}`)));
  for (const request of member.requests) {
    const title = `${requestName(request.kind)} at ${clock(request.received_at)}, answered after ${duration(request.occurred_at - request.received_at)}${request.error_code ? ` with error ${request.error_code}` : ""}${request.reason ? `: ${request.reason}` : ""}`;
    if (!RETRIES.has(request.error_code ?? 0)) parts.push(point(axis, request.occurred_at, symbol("refused"), title));
    else if (request.kind === "JOIN_GROUP" && request.error_code !== 79) parts.push(bar(axis, request.received_at, request.occurred_at, "preparing", `join ${duration(request.occurred_at - request.received_at)}`, title));
    else if (request.kind === "SYNC_GROUP") parts.push(bar(axis, request.received_at, request.occurred_at, "completing", `sync ${duration(request.occurred_at - request.received_at)}`, title));
    else if (request.kind === "CONSUMER_GROUP_HEARTBEAT") parts.push(bar(axis, request.received_at, request.occurred_at, "computing", `epoch ${request.answer_generation}`, `${title}: epoch ${request.generation} to ${request.answer_generation}`));
    else if (request.kind === "LEAVE_GROUP") parts.push(point(axis, request.occurred_at, symbol("left"), title));
    else if (request.kind === "OFFSET_FETCH" && request.occurred_at >= row.started_at) parts.push(point(axis, request.received_at, symbol("begun"), `Begins to work: ${title}`));
  }
  const its = member.membership;
  if (its?.ended_at !== null && its?.ended_at !== undefined) parts.push(point(axis, its.ended_at, symbol(lookOfEnd(its.end_kind)), `${its.end_kind} ${clock(its.ended_at)}`));
  return parts;
}

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
const waitedFor = (row, member) => member.back === null || (member.back - row.started_at >= WAITED && (row.joined_at === null || row.joined_at - member.back <= WAITED));
