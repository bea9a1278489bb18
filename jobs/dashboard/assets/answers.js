// The answer of a named question as a table, with what can be done with it: more rows, CSV, JSON, the command.
import { h, printable, table } from "./dom.js";
import { bound, clock, count, duration, instant, many, parts, shortMember, zoneName } from "./format.js";
import { symbol } from "./looks.js";
import * as state from "./state.js";

/** More rows than this are for files, not for a page. */
export const MOST_ROWS = 2000;

const SHORTER = [["client_id", "client"], ["client_host", "host"], ["group_id", "group"], ["member_id", "member"]];
const PROSE = new Set(["message", "reason", "detail", "last_reason", "topics", "requests_of", "line"]);

/** A column's name as a person reads it, as `rebalance ask` shows it: without a unit, since each cell has its unit. */
export function heading(name) {
  if (name === "unavailable_partition_ms") return "unowned";
  return SHORTER.reduce((text, [long, short]) => text.replace(long, short), name).replace(/_ms$/, "").replaceAll("_", " ");
}

const TIME = /(^|_)(at|from|until)$|^since$/;

/** Whether a column is one of numbers that are no times. */
const isNumber = (name, rows) => !TIME.test(name) && rows.some((row) => typeof row[name] === "number");

/** A value as a node or a text. */
export function cell(name, value, row) {
  if (value === null || value === undefined || value === "") return h("span", { class: "dim" }, "-");
  if (TIME.test(name)) return h("span", { class: "t" }, instant(value));
  if (typeof value === "number") return name.endsWith("_ms") ? h("span", { title: `${count(value)} ms` }, bound(name, row) + duration(value)) : bound(name, row) + count(value);
  if (typeof value === "object") return printable(JSON.stringify(value), 200);
  if (value === true || value === false) return value ? "yes" : "no";
  const text = String(value);
  if (name === "severity") return [symbol(text.toLowerCase()), text];
  if (name === "member_id" || name === "waited_for") return h("code", { title: printable(text, 300) }, shortMember(text));
  if ((name === "group_id" || name === "a_group") && row.cluster) return h("a", { href: state.groupLink(row.cluster, text) }, printable(text, 60));
  if (/^r[0-9a-f]{11}$/.test(text) && row.cluster && row.group_id) return h("a", { href: state.rebalanceLink({ ...row, id: text }) }, h("code", {}, text));
  if (/^f[0-9a-f]{11}$/.test(text)) return h("a", { href: state.link("/findings", { id: text }) }, h("code", {}, text));
  return printable(text, PROSE.has(name) ? 200 : 60);
}

/** What stands above the table, once: the day, if it is that of all times, and columns of which no row can have another value. */
export function shared(answer) {
  const times = answer.columns.filter((name) => TIME.test(name));
  const days = new Set(answer.rows.flatMap((row) => times.map((name) => row[name]).filter((at) => at !== null).map((at) => parts(at)[0])));
  return { day: days.size === 1 ? [...days][0] : "", common: answer.fixed.filter((name) => answer.columns.includes(name)) };
}

/** A time, without its day where that stands above. */
export const when = (at, { day }, digits = 3) => h("span", { class: "t", title: at === null ? null : `${instant(at)} ${zoneName()}` }, day ? clock(at, digits) : instant(at, digits));

function above(answer, { day, common }) {
  const [first] = answer.rows;
  const texts = [...common.map((name) => [heading(name), " ", cell(name, first[name], first)]), day ? [`${day}, ${zoneName()}`] : null].filter(Boolean);
  return texts.length ? h("p", { class: "above" }, texts.map((text) => h("span", {}, text))) : null;
}

/** Columns for `table` by their names, each with a heading behind it where its name is none: "cause Main cause". Others are taken as they are. */
export const columns = (rows, ...wanted) => wanted.map((one) => {
  if (typeof one !== "string") return one;
  const [name, ...words] = one.split(" ");
  const title = words.join(" ") || heading(name);
  return { name, label: title[0].toUpperCase() + title.slice(1), number: isNumber(name, rows), class: TIME.test(name) ? "t" : null, cell: (row) => cell(name, row[name], row) };
});

/** The columns of an answer for `table`, all as they are but for what stands above. */
export function plainColumns(answer, of) {
  return answer.columns.filter((name) => !of.common.includes(name) && name !== "at_least").map((name) => ({
    name, label: heading(name), number: isNumber(name, answer.rows), class: PROSE.has(name) ? "prose" : null,
    cell: (row) => (TIME.test(name) && row[name] !== null ? when(row[name], of) : cell(name, row[name], row)),
  }));
}

/** The address of the same answer as a file. */
function exportLink(name, values, form) {
  const search = new URLSearchParams(Object.entries(values).filter(([, value]) => value));
  return `/api/export/${encodeURIComponent(name)}.${form}` + (search.size ? `?${search}` : "");
}

/**
 * An answer with everything around it. options: columns and shared (else all columns of the answer, and what its rows share), key(row),
 * caption, empty (what is said when there are no rows and no reason is known), about (whether to link to the question).
 */
export function result(name, values, answer, options = {}) {
  const shown = answer.rows.length;
  const of = options.shared ?? shared(answer);
  return h("section", { class: "result", "aria-label": options.caption ?? "Answer" },
    shown
      ? [above(answer, of), table(options.columns ?? plainColumns(answer, of), answer.rows, { caption: options.caption, key: options.key ?? ((row) => row.id ?? null) })]
      : h("div", { class: "nothing", role: "status" }, h("p", {}, h("b", {}, "Nothing found.")), h("p", {}, answer.nothing || options.empty || "")),
    after(name, values, answer, options));
}

/** What can be done with an answer. options: about; noun (of a row), first (which of more rows are shown), own (a button of the page). */
export function after(name, values, answer, { about, noun = "row", first = "The first", own = null }) {
  const shown = answer.rows.length;
  const more = answer.cut && shown < MOST_ROWS;
  return h("div", { class: "after" },
    shown ? h("span", { class: "note" }, answer.cut ? `${first} ${many(shown, noun)}.` : `${many(shown, noun)}.`) : null,
    more ? h("button", { type: "button", id: "more", onclick: () => state.set({ limit: Math.min(MOST_ROWS, shown * 5) }, { push: true }) }, "Show more") : null, own,
    answer.cut && !more ? h("span", { class: "note" }, "A file has as many as its limit allows.") : null,
    answer.provisional ? h("span", { class: "note" }, `Later lines may correct ${many(answer.provisional, "rebalance")}.`) : null,
    h("span", { class: "files" },
      about ? h("a", { href: state.link("/questions", { ...values, name, cluster: state.get("cluster") }) }, "As a question") : null,
      ["csv", "json"].map((form) => h("a", { href: exportLink(name, values, form), download: `${name}.${form}` }, form.toUpperCase()))));
}

/** A share of a whole as a bar behind its text. `mark`: from which percent on it is drawn as a warning. */
export function share(percent, text, mark = 101) {
  const width = Math.max(0, Math.min(100, percent ?? 0));
  return h("span", { class: width >= mark ? "share high" : "share", style: { "--share": `${width}%` } }, text);
}
