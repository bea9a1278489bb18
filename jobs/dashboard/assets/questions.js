// Questions: the files of sql/, their parameters as a form, their answers as tables and files.
import { MOST_ROWS, result } from "./answers.js";
import { ask, fetchJson } from "./api.js";
import { h, printable, put } from "./dom.js";
import { answered, filters } from "./filters.js";
import * as state from "./state.js";

export const keys = [["/", "search the questions"]];
export const title = () => chosen?.question ?? "Questions";

const TIMES = { since: "15m, 06:12", until: "newest", at: "newest" };
let frame = null;
let chosen = null;

export async function draw(main, { first }) {
  const all = await fetchJson("questions");
  chosen = all.find((each) => each.name === state.get("name")) ?? null;
  if (frame === null || !main.contains(frame.out)) frame = framed();
  frame.whole.classList.toggle("chosen", chosen !== null);
  frame.find.sync();
  put(frame.list, list(all));
  if (frame.name !== (chosen?.name ?? "")) {
    frame.name = chosen?.name ?? "";
    frame.form = chosen ? filters(fields(chosen), "Parameters") : null;
    frame.answer = h("div", { class: "out" });
    frame.next = chosen ? about(chosen) : welcome();
  }
  if (chosen) await answer();
  if (frame.next) put(frame.out, frame.next);
  frame.next = null;
  if (!main.contains(frame.out)) put(main, frame.whole);
  if (first) frame.list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

function framed() {
  const find = filters([{ name: "find", label: "Search", kind: "search", placeholder: "what do you want to know?" }], "Search the questions");
  const made = { find, list: h("nav", { class: "library", "aria-label": "Questions" }), out: h("div", { class: "asked" }), name: null, form: null, answer: null };
  made.whole = h("div", { class: "asking" }, h("aside", { "aria-label": "Library" }, find.form, made.list), made.out);
  return made;
}

function list(all) {
  const words = state.get("find").toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (each) => words.every((word) => `${each.name} ${each.question} ${each.answer}`.toLowerCase().includes(word));
  const found = all.filter(fits);
  if (!found.length) return h("p", { class: "note", role: "status" }, "No question matches.");
  return [["Every day", false], ["Asked most often", true]].map(([heading, often]) => {
    const some = found.filter((each) => each.often === often);
    return some.length ? [h("h2", {}, heading), h("ul", {}, some.map((each) => h("li", {}, entry(each))))] : null;
  });
}

function entry(each) {
  const values = { name: each.name, find: state.get("find"), ...shared(each) };
  const others = [...state.values().keys()].filter((name) => name !== "tz" && name !== "cluster");
  return h("a", { href: state.link("/questions", values), "data-key": `question-${each.name}`, "aria-current": each.name === chosen?.name ? "page" : null,
    onclick: state.following({ ...Object.fromEntries(others.map((name) => [name, ""])), ...values }) }, each.question, " ", h("code", {}, each.name));
}

/** The values of this address that another question takes as well. */
const shared = (each) => Object.fromEntries(["cluster", "group", "since", "until"].filter((name) => each.parameters.some((one) => one.name === name)).map((name) => [name, state.get(name)]));

function fields(question) {
  return question.parameters.filter((one) => one.name !== "cluster").map((one) => ({
    name: one.name, label: one.name, hint: one.meaning, placeholder: one.default ?? (TIMES[one.name] ?? "all"),
    kind: one.choices.length ? "select" : /^\d+$/.test(one.default ?? "") ? "number" : TIMES[one.name] ? "time" : "text",
    choices: one.choices.length ? [["", one.default ?? "all"], ...one.choices.filter((value) => value !== one.default).map((value) => [value, value])] : null,
  }));
}

function welcome() {
  const wanted = state.get("name");
  return [h("h1", { class: "question" }, "Questions"), wanted ? h("div", { class: "notice error", role: "alert" }, `There is no question named ${printable(wanted, 60)}.`) : null,
    h("div", { class: "nothing" }, h("p", {}, "Choose a question. Each is a file of SQL that DuckDB and Spark both run; its answer here is that of ", h("code", {}, "rebalance ask"), "."))];
}

function about(question) {
  return [
    h("p", { class: "crumbs back" }, h("a", { href: state.link("/questions", { find: state.get("find"), cluster: state.get("cluster") }) }, "All questions")),
    h("h1", { class: "question" }, question.question), h("p", { class: "prose" }, words(question.answer)),
    frame.form.form, frame.answer,
    h("details", {}, h("summary", {}, "SQL"), h("pre", { class: "sql", tabindex: "0" }, question.text)),
  ];
}

/** Text with `code` in backticks as code. */
const words = (text) => text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));

async function answer() {
  frame.form.sync();
  const given = Object.fromEntries(chosen.parameters.map((one) => [one.name, state.get(one.name)]));
  const wanted = given.limit || chosen.parameters.find((one) => one.name === "limit")?.default;
  const shown = { ...given, limit: Number(wanted) > MOST_ROWS ? String(MOST_ROWS) : given.limit };
  await answered(frame.answer, async () => [result(chosen.name, given, await ask(chosen.name, shown), { caption: chosen.question }), command(chosen, given)]);
}

/** The command that gives the same answer in a terminal. */
function command(question, given) {
  const text = ["rebalance ask", question.name, "--lakehouse DIR", ...question.parameters.filter((one) => given[one.name])
    .map((one) => (one.option ? `--${one.name} ${quoted(given[one.name])}` : `--set ${quoted(`${one.name}=${given[one.name]}`)}`))].join(" ");
  const button = h("button", { type: "button", id: "copy", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed: select the text";
    }
  } }, "Copy");
  return h("div", { class: "command" }, h("code", { tabindex: "0" }, printable(text, 2000)), button);
}

const quoted = (value) => (/^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`);
