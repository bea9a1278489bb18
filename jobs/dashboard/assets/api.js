// Asks the server. What did not change since it was last asked comes from the browser: the server answers 304.

import { saved } from "./state.js";

const answers = saved ? JSON.parse(document.getElementById("answers").textContent) : {}; // by what is asked for
const NARROWING = ["since", "until", "limit"]; // a saved report holds all rows that it was made with

/** What the server cannot answer, in a sentence for the reader. `transient`: asking again may help. */
export class Problem extends Error {
  constructor(message, { transient = false } = {}) {
    super(message);
    this.transient = transient;
  }
}

/** The data at an address of the API. Problem: there is none. */
export async function fetchJson(path, values = {}) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== null && value !== undefined && value !== "" && !(saved && NARROWING.includes(name))) search.set(name, value);
  if (saved) {
    const held = answers[path + (search.size ? `?${[...search].map((pair) => pair.join("=")).join("&")}` : "")] ?? answers[path];
    if (held === undefined) throw new Problem("This report does not hold that: `rebalance dashboard` shows it.");
    return held;
  }
  const address = `/api/${path}` + (search.size ? `?${search}` : "");
  let response;
  try {
    response = await fetch(address);
  } catch {
    throw new Problem("The dashboard does not answer: is `rebalance dashboard` still running?", { transient: true });
  }
  let data;
  try {
    data = await response.json();
  } catch {
    throw new Problem(`The dashboard failed to answer (HTTP ${response.status}); its terminal says why.`);
  }
  if (data.problem && !("lines" in data)) throw new Problem(data.problem, { transient: response.ok });
  return data;
}

/** The answer of a named question: {rows: [{column: value}], cut, provisional, nothing}. A row has the names of its clients, too. */
export async function ask(name, values = {}) {
  const answer = await fetchJson(`ask/${encodeURIComponent(name)}`, values);
  return { ...answer, rows: answer.rows.map((row, place) => ({ ...Object.fromEntries(answer.columns.map((column, index) => [column, row[index]])), ...answer.names[place] })) };
}

/** Rows of a table: {rows, cut}. sql/pages has the names. */
export const rows = (name, values) => fetchJson(`rows/${name}`, values);
