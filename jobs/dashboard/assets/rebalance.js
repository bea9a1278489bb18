// One rebalance: what set it off, who held it up, what it cost, what to change, and the log lines that prove it.
import { columns } from "./answers.js";
import { fetchJson } from "./api.js";
import { around } from "./axis.js";
import { h, panel, printable, put, table } from "./dom.js";
import { clock, count, duration, instant, shortMember, zoneName } from "./format.js";
import { card, idsOf, linesBelow } from "./judged.js";
import { swatch } from "./looks.js";
import * as state from "./state.js";
import { isOpen } from "./timeline_rows.js";
import { membersOf, waitsOf, waterfall } from "./waterfall.js";

const MOST = 5000;
const BROKER_MS = 60_000; // groups move to another broker so soon

export const keys = [["n p", "next, previous rebalance of the group"], ["t", "the group's timeline"]];
export const title = () => `Rebalance of ${printable(state.get("group"), 40)}`;

let neighbours = {};
let group = null;

export function press(key) {
  const row = { n: neighbours.next, p: neighbours.before }[key];
  if (row) location.href = state.rebalanceLink(row);
  if (key === "t" && group) location.href = group;
}

export async function draw(main) {
  const id = state.get("id");
  const data = id ? await fetchJson("rebalance", { id }) : { rebalance: null };
  const row = data.rebalance;
  if (!row) {
    put(main, h("div", { class: "state" }, h("h1", {}, id ? "There is no such rebalance" : "Which rebalance?"), h("p", {}, id ? `No row has the id ${printable(id, 20)}. A provisional row gets a new id when later lines correct its start or end.` : "The timeline of each group shows its rebalances."),
      h("p", {}, h("a", { href: state.link("/groups", { cluster: state.get("cluster") }) }, "All groups")),
      state.get("group") ? h("p", {}, h("a", { href: state.groupLink(state.get("cluster"), state.get("group")) }, `The timeline of ${printable(state.get("group"), 60)}`)) : null));
    return;
  }
  const of = { cluster: row.cluster, group: row.group_id };
  const end = row.ended_at + (row.first_fetch_ms ?? 0);
  const { requests, findings } = data;
  const { entries } = await fetchJson("attention", of);
  const unended = isOpen(row) ? entries.filter((each) => idsOf(each).includes(row.id)).map((each) => ({ ...each, occurred_at: each.first_at })) : [];
  neighbours = { before: data.before, next: data.next };
  group = state.groupLink(row.cluster, row.group_id, around(row.started_at, row.ended_at));
  const people = membersOf(row, data.members, requests.rows);
  const waiting = waitsOf(row, people, [...findings, ...data.afterwards], data.rounds, data.heartbeats);
  const bands = entries.map((entry) => entry.away).filter((band) => band && band.from <= end && band.to >= row.started_at - (row.culprit_broker ? BROKER_MS : 0));
  const whole = { from: Math.min(row.started_at, ...waiting.waits.map((wait) => wait.from), ...(row.culprit_broker ? bands.map((band) => band.from) : [])), to: end };
  const ids = [row.id, ...new Set([row.finding_id, ...findings.map((each) => each.id)].filter(Boolean))].slice(0, 6);
  const names = [row.group_id, row.culprit_client_id, row.client_id, ...people.flatMap((member) => [member.id, member.membership?.client_id])];
  put(main, head(row), story(row, data, people), facts(row),
    panel("Waterfall", waiting.awaited.size ? "who was waited for first, then in the order in which members came back" : "in the order in which members came back", [parts(row, whole), waterfall(row, data.rounds, people, waiting, bands, windowOf(row, whole), state.get("all") === "1", () => state.set({ all: "1" }), pick), requests.rows.some((each) => each.source === "request") ? (requests.cut ? h("p", { class: "note" }, `Only the first ${count(MOST)} requests are shown.`) : null) : h("p", { class: "note" }, "Only kafka-request.log shows when each member came back and how long it waited.")]),
    h("div", { class: "grid2" },
      panel("What set it off", "", triggers(row, data, findings, data.steps)),
      panel("What to change", "", advice([...unended, ...findings], row)),
      panel("Partitions before and after", "", partitions(row, data.had, data.given, people), "wide")),
    data.stopped.length ? panel("Partitions that stopped", row.in_records, stopped(data.stopped)) : null,
    panel("The log lines that prove it", "", linesBelow(ids, names)));
}

function head(row) {
  return [
    h("p", { class: "crumbs" }, h("a", { href: state.link("/", { cluster: row.cluster }) }, printable(row.cluster, 40)), " / ", h("a", { href: group }, printable(row.group_id, 60)), " / rebalance ", h("code", {}, row.id)),
    h("div", { class: "head" }, h("h1", {}, swatch(row.look), row.title), h("span", { class: "note" }, `${instant(row.started_at)} ${zoneName()} `, h("code", {}, row.called)),
      h("div", { class: "spans" }, neighbours.before ? h("a", { href: state.rebalanceLink(neighbours.before), rel: "prev" }, "‹ before") : null, neighbours.next ? h("a", { href: state.rebalanceLink(neighbours.next), rel: "next" }, "next ›") : null)),
  ];
}

/** What happened, in a sentence. */
function story(row, data, people) {
  const slow = people.find((member) => member.id === row.slowest_member_id);
  const parts = [];
  if (isOpen(row)) parts.push(printable(row.story, 1200));
  else if (row.total_ms !== null) {
    parts.push(`It took ${duration(row.total_ms)}`);
    const steps = [];
    if (row.join_ms !== null) steps.push(`join ${duration(row.join_ms)}${slow ? `, waited for ${slow.name} ${shortMember(slow.id)}${slow.back === null ? ", which did not come back" : ""}` : ""}`);
    if (row.sync_ms !== null && row.joined_at !== null) steps.push(`sync ${duration(row.sync_ms)}`);
    if (row.first_fetch_ms !== null) steps.push(`start ${duration(row.first_fetch_ms)}, until the last member began to read`);
    if (steps.length > 1) parts.push(`: ${steps.join("; ")}`);
    parts.push(".");
  } else parts.push("No line shows when it began, so its duration is unknown.");
  if (row.outcome === "SUPERSEDED") parts.push(" The next one began before it had ended.");
  return [h("p", { class: "lead" }, parts.join("")), row.waits_for && !isOpen(row) ? h("p", { class: "note" }, `${row.note[0].toUpperCase()}${row.note.slice(1)}.`) : null];
}

/** The three figures that people ask for; all others are folded. */
function facts(row) {
  const told = [[duration(row.total_ms), "total"], [duration(row.unavailable_partition_ms), "unowned partition time (sum)"], [`${row.members_before ?? "?"} → ${row.members_after ?? "?"}`, "members before → after"]];
  const others = [
    ["join phase", duration(row.join_ms)], ["sync phase", duration(row.sync_ms)], ["leader's assignment", duration(row.assignment_ms)], ["until the last member began to read", duration(row.first_fetch_ms)],
    ["records read twice", row.read_twice], ["lag added", row.lag], ["until the lag was back", duration(row.catch_up_ms)],
    ["partitions moved", row.partitions_moved === null ? "-" : `${row.partitions_moved} of ${row.partitions ?? "?"}`], ["outcome", row.outcome], [row.group_protocol === "consumer" ? "epoch" : "generation", row.generation ?? "-"], ["assignor", row.protocol ?? "-"],
  ];
  return [
    h("ul", { class: "facts line" }, told.map(([value, label]) => h("li", {}, h("b", {}, value), " ", label))),
    h("details", {}, h("summary", { class: "note" }, "All figures"), h("dl", { class: "figures" }, others.filter(([, value]) => value !== "-").map(([label, value]) => h("div", {}, h("dt", {}, label), h("dd", {}, printable(value, 40)))))),
  ];
}

const pick = (from, to) => state.set({ from, to }, { push: true });

/** Which part of the time the waterfall shows: a sync of 3 ms is not to be seen beside a join of 11 s, nor that beside a silence of a minute. */
function windowOf(row, whole) {
  const [from, to] = [state.number("from"), state.number("to")];
  const part = from !== null && to > from ? { from, to } : { ...whole, from: row.started_at };
  const room = Math.max((part.to - part.from) * 0.03, 4);
  return { from: part.from - room, to: part.to + room };
}

function parts(row, whole) {
  const all = [[`Rebalance ${duration(row.total_ms)}`, null, null], ...(whole.from < row.started_at ? [[`With the ${duration(row.started_at - whole.from)} before`, whole.from, whole.to]] : [])];
  if (row.joined_at !== null && row.group_protocol !== "consumer") all.push([`Join ${duration(row.join_ms)}`, row.started_at, row.joined_at], [`Sync ${duration(row.sync_ms)}`, row.joined_at, whole.to]);
  const chosen = ([, from, to]) => from === state.number("from") && to === state.number("to");
  return all.length < 2 ? null : h("div", { class: "tabs", role: "group", "aria-label": "Part of the time" }, all.map((part) => h("button", { type: "button", "data-key": `part-${part[0]}`, "aria-pressed": String(chosen(part)), onclick: () => pick(part[1], part[2]) }, part[0])));
}

function triggers(row, chain, findings, steps) {
  const link = (each) => h("a", { href: state.rebalanceLink(each) }, `${instant(each.started_at)} ${each.title}`);
  const why = findings.find((each) => each.id === row.finding_id);
  const items = [
    ...chain.earlier.map((each) => [link(each), " was superseded by the next one"]),
    why ? [h("b", {}, `${instant(why.occurred_at)} ${why.code}: `), printable(why.message, 600)] : null,
    [h("b", {}, `${instant(row.started_at)} ${row.cause}`), row.who === "-" ? "" : ` of ${row.who}`, row.startup || row.cause === row.blamed ? "" : ` began it; its cause is ${row.blamed} ${row.by}`, row.reason ? h("q", { class: "reason" }, printable(row.reason, 400)) : null],
    ...chain.later.map((each) => ["Superseded by ", link(each)]),
  ].filter(Boolean);
  return [
    h("ol", { class: "chain" }, items.map((item) => h("li", {}, item))),
    h("details", {}, h("summary", {}, `Step by step (${steps.length})`), h("ol", { class: "steps" }, steps.map((step) => h("li", {}, h("span", { class: "t dim" }, clock(step.occurred_at)), " ", h("b", {}, step.what), " ", printable(step.cause, 60), step.who === "-" ? "" : ` ${step.who}`, step.detail ? h("span", { class: "dim" }, ` ${printable(step.detail, 200)}`) : null)))),
  ];
}

function advice(findings, row) {
  if (!findings.length) return h("p", { class: "note" }, row.startup ? "A start-up is no problem: the group was new or empty." : "No finding is about this rebalance.");
  return findings.map((each) => card("article", each, "", [each.code, " ", h("small", {}, `${clock(each.occurred_at)} ${each.clients ?? each.who}`)]));
}

/** Who had what: of the generation before and of this one. */
function partitions(row, earlier, later, people) {
  const consumer = row.group_protocol === "consumer";
  const newest = Math.max(...earlier.map((each) => each.generation ?? -1), -1);
  const before = new Map();
  for (const each of earlier) if ((consumer || each.generation === newest) && !before.has(each.member_id)) before.set(each.member_id, each);
  const after = new Map();
  for (const each of later) if (each.generation !== null && (consumer ? each.generation <= row.generation : each.generation === row.generation) && !after.has(each.member_id)) after.set(each.member_id, each);
  if (!before.size && !after.size) return h("p", { class: "note" }, "No line shows who was given which partitions: that takes kafka-request.log, records or polls.");
  // A member of the consumer protocol that keeps what it has is not told so again.
  if (consumer) for (const [id, each] of before) if (!after.has(id) && people.some((member) => member.id === id && (member.membership?.ended_at ?? Infinity) > row.ended_at)) after.set(id, each);
  const names = new Map(people.map((member) => [member.id, member.name]));
  const ids = [...new Set([...before.keys(), ...after.keys()])].filter((id) => !consumer || people.some((member) => member.id === id));
  const list = (each) => (each ? (each.names === null ? "not decoded" : each.names.split(" ").filter(Boolean)) : []);
  const shown = (own, other) => (typeof own === "string" ? own : own.length ? own.map((name) => [h(other.includes(name) ? "span" : "b", { class: other.includes(name) ? "part" : "part moved" }, short(name)), " "]) : h("span", { class: "dim" }, "none"));
  return [table([
    { label: "Member", class: "main", cell: (id) => [names.get(id) ?? (after.get(id) ?? before.get(id)).name, " ", h("code", {}, shortMember(id))] },
    { label: `Before${newest >= 0 && !consumer ? ` (generation ${newest})` : ""}`, cell: (id) => shown(list(before.get(id)), list(after.get(id))) },
    { label: `After${consumer ? "" : ` (generation ${row.generation})`}`, cell: (id) => shown(list(after.get(id)), list(before.get(id))) },
  ], ids, { most: 100, caption: "Partitions before and after", empty: "No line shows the partitions of these generations." }), h("p", { class: "note" }, "Bold with a frame: it changed hands.")];
}

const told = (at, who) => [h("span", { class: "t" }, clock(at)), " ", h("span", { class: "dim" }, who)];

/** What was committed of each partition before and after, and what came of it. */
const stopped = (rows) => table(columns(rows,
  { label: "Partition", class: "main nowrap", cell: (row) => short(row.partition) },
  { label: "Last commit", cell: (row) => told(row.committed_at, row.from_who) },
  "committed_offset Offset",
  { label: "Read again", cell: (row) => (row.resumed_at === null ? "not seen" : told(row.resumed_at, row.to_who)) },
  { label: "From", number: true, cell: (row) => (row.resumed_offset === -1 ? "no offset" : count(row.resumed_offset)) },
  "unread_ms",
  { label: "Lag added", number: true, cell: (row) => row.lag },
  { label: "Read twice", number: true, cell: (row) => row.read_twice },
), rows, { most: 100, caption: "Partitions that stopped", key: (row) => row.partition });

/** A partition: topics that are named by their ids are shortened. */
const short = (name) => printable(name.replace(/^([A-Za-z0-9_-]{4})[A-Za-z0-9_-]{18}-(\d+)$/, "$1…-$2"), 60);
