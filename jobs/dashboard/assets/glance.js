// Clusters at a glance: what happened in a sentence, all groups over time, the incidents as rows; then states, charts, clients and deploys, the pipeline.
import { columns } from "./answers.js";
import { fetchJson } from "./api.js";
import { around } from "./axis.js";
import { chart } from "./chart.js";
import { h, panel, printable, put, table } from "./dom.js";
import { bound, clock, count, duration, instant, iso, many } from "./format.js";
import { calm, gaps, incidents, when } from "./judged.js";
import { legend, looksIn, symbol } from "./looks.js";
import { overview } from "./overview.js";
import * as state from "./state.js";
import { stateSwatch } from "./timeline_draw.js";

const SPANS = [["1h", "1 hour", 3.6e6], ["24h", "24 hours", 8.64e7], ["7d", "7 days", 6.048e8], ["", "all", 0]];
const STEPS = { n: 1, p: -1 };

export const title = () => "Clusters at a glance";
export const keys = [["n p", "next, previous incident"], ["Enter", "its panel"], ["+ −", "zoom"], ["0", "the whole time"]];

let shown = {}; // the time that is shown, and the whole

export function press(key) {
  const factor = { "+": 0.5, "=": 0.5, "-": 2 }[key];
  if (key in STEPS) {
    const rows = [...document.querySelectorAll("button.row")];
    const next = rows.indexOf(document.activeElement) + STEPS[key];
    rows[Math.min(Math.max(next, 0), rows.length - 1)]?.focus();
  } else if (factor || key === "0") {
    const { from, to, whole } = shown;
    const room = ((factor - 1) * (to - from)) / 2;
    const within = { from: Math.round(Math.max(from - room, whole.from)), to: Math.round(Math.min(to + room, whole.to)) };
    state.set(factor && within.to - within.from < whole.to - whole.from ? within : { from: "", to: "" }, { push: true });
  }
}

export async function draw(main) {
  const cluster = state.get("cluster");
  const zoom = state.number("from") !== null && state.number("to") > state.number("from") ? { from: state.number("from"), to: state.number("to") } : null;
  const since = zoom ? iso(zoom.from) : state.get("since");
  const [data, health] = await Promise.all([fetchJson("overview", { cluster, since, until: zoom ? iso(zoom.to) : "" }), state.saved ? null : fetchJson("health")]);
  if (!data.clusters.length) {
    put(main, h("div", { class: "state" }, h("h1", {}, "Nothing to show yet"), h("p", {}, data.hint || "No line read so far names a consumer group."), h("p", { class: "note" }, health?.summary)));
    return;
  }
  const period = zoom ?? data.period;
  shown = { ...period, whole: (zoom && shown.whole) || period };
  const within = (from, to) => !zoom || (from <= zoom.to && to >= zoom.from);
  const attention = { ...data, entries: data.entries.filter((entry) => within(entry.first_at, entry.last_at)) };
  const activity = data.activity.filter((row) => within(row.began_at, row.began_at + data.step));
  const spans = SPANS.filter(([, , length]) => !state.saved && length < Math.max(...data.clusters.map((each) => each.last_at)) - Math.min(...data.clusters.map((each) => each.first_at)));
  const groups = data.states.reduce((sum, row) => sum + row.groups, 0);
  const charts = h("div", { class: "grid2" },
    panel("Rebalances over time", `by cause, ${duration(data.step)} a column`, chart(activity, data.step, period, "rebalances", "rebalances", (value) => count(Math.round(value)))),
    panel("Unowned partition time", `${leastOf(activity)}summed over all partitions`, chart(activity, data.step, period, "unavailable_partition_ms", "unowned partition time", (value) => duration(value))),
    panel("Clients that caused the most rebalancing", "ranked by the time of all rebalances that each began, including by joining", costliest(data.culprits), "", "clients"),
    panel("Deploys and restarts", "waves of restarts in a group", deploys(data.deploys), "", "deploys"),
    panel(health ? "Pipeline" : "What this was read from", "", [health ? verdict(health) : null, sources(data)], "wide"));
  const picture = attention.lanes.length || zoom ? overview(attention, period, groups) : null;
  const read = main.querySelector(".detail")?.scrollTop; // as far as a panel was read that stays
  put(main,
    data.shown?.since || data.shown?.until ? h("p", { class: "crumbs" }, `From ${data.shown.since ? instant(data.shown.since, 0) : "the beginning"} to ${data.shown.until ? instant(data.shown.until, 0) : "the end"}`) : null,
    data.outside ? h("p", { class: "notice error" }, data.outside) : null,
    lead(attention),
    picture, legend(looksIn(...[picture, charts].filter(Boolean))),
    attention.entries.length ? panel("What needs attention", data.counts, incidents(attention, undefined, true), "wide") : null,
    said(data), gaps(attention),
    h("div", { class: "head" }, stateBar(data.states), spans.length < 2 ? null : h("div", { class: "spans", role: "group", "aria-label": "How far back" }, spans.map(([value, label]) => h("button", { type: "button", "data-key": `since-${value}`, "aria-pressed": String(since === value), onclick: () => state.set({ since: value, from: "", to: "" }, { push: true }) }, label)))),
    charts);
  main.querySelector(".detail")?.scrollTo(0, read ?? 0);
}

/** The mark of a picture of unowned partition time of which some parts are not known. */
const leastOf = (rows) => (rows.some((row) => row.unavailable_partition_ms) && rows.some((row) => row.unavailable_partition_ms === null || bound("unavailable_partition_ms", row)) ? "at least, " : "");

/** What clients say of groups of which no broker speaks. */
function said(data) {
  if (!data.said.length) return null;
  const groups = [...new Set(data.said.map((one) => one.group_id))];
  return h("details", { class: "gaps", open: !data.entries.length }, h("summary", {}, data.clients_say),
    groups.map((group) => [h("h3", {}, printable(group, 60)), h("ul", {}, data.said.filter((one) => one.group_id === group).map((one) => h("li", {}, one.text)))]));
}

/** What happened, in a sentence; when, who, and what it cost. */
function lead(attention) {
  const [entry] = attention.entries;
  if (!entry) return [h("h1", {}, attention.clusters.length === 1 ? printable(attention.clusters[0].cluster, 60) : many(attention.clusters.length, "cluster")), calm(attention)];
  return h("div", { class: "sentence" }, h("h1", {}, symbol(entry.severity.toLowerCase(), entry.severity), entry.title),
    h("p", { class: "note" }, [entry.subject, when(entry, clock), entry.clients, entry.cost].filter(Boolean).join(" · "), " · ", h("a", { href: "#attention" }, attention.entries.length > 1 ? `and ${many(attention.entries.length - 1, "more incident")}` : "what to change"), " · ", h("a", { href: "#deploys" }, "was it a deploy?"), " · ", h("a", { href: "#clients" }, "which client costs most?")));
}

const stateBar = (rows) => h("ul", { class: "facts" }, rows.map((row) => h("li", { class: "fact" }, h("a", { href: state.link("/groups", { cluster: state.get("cluster"), state: row.state }) }, h("b", {}, stateSwatch(row.state), count(row.groups))),
      h("span", {}, `${row.state === "UNKNOWN" ? "State not seen" : row.state}${row.group_protocol === "classic" ? "" : `, ${row.group_protocol} protocol`}${row.members ? `, ${many(row.members, "member")}` : ""}`))));

const costliest = ({ rows }) => table(columns(rows,
  { label: "Client", class: "main", cell: (row) => row.name },
  "cause Main cause", "rebalances", "total_ms Time", "unavailable_partition_ms"), rows, { caption: "Clients that caused the most rebalancing", empty: "No client caused a rebalance in this time." });

const WAVES = { ROLLING: "one after another", TOGETHER: "all at once", ONE_CLIENT: "one client, again and again", UNCLEAN: "removed first, back later", COORDINATOR_MOVED: "no deploy: a broker did it" };

const deploys = ({ rows }) => table(columns(rows,
  { label: "Group", class: "main", cell: (row) => h("a", { href: state.groupLink(row.cluster, row.group_id, around(row.started_at, row.ended_at)) }, printable(row.group_id, 60)) },
  { label: "What", cell: (row) => WAVES[row.verdict] ?? row.verdict },
  { label: "When", class: "t", cell: (row) => `${clock(row.started_at, 0)} to ${clock(row.ended_at, 0)}` },
  "restarts", "unavailable_partition_ms"), rows, { caption: "Deploys and restarts", empty: "No client.id came back under a new member id twice or more within a minute." });

/** What was read of each cluster, and what the rest would add. */
const sources = (data) => [
  data.clusters.map((each) => h("p", { class: "note" }, h("b", {}, printable(each.cluster, 40)), ` ${instant(each.first_at, 0)} to ${instant(each.last_at, 0)}, ${many(each.sources.length, "source")}${each.lines ? `: ${count(each.lines.lines_read)} lines read, ${count(each.lines.events)} about groups, ${count(each.lines.quarantined)} unreadable` : ""}`)),
  data.missing.length ? h("details", {}, h("summary", { class: "note" }, `What was not read, and what it would add (${data.missing.length})`), h("ul", {}, data.missing.map((text) => h("li", {}, text)))) : null];

function verdict(health) {
  if (health.ok === null) return h("p", {}, symbol("info"), health.summary);
  if (health.ok) return h("p", {}, symbol("good"), h("b", {}, "OK: "), health.summary);
  return health.problems.map((each) => h("article", { class: "entry error" }, h("p", {}, symbol("error", "problem"), h("b", {}, each.code), " ", each.message), h("p", { class: "note" }, each.advice)));
}
