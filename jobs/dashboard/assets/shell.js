// What all pages share: it loads the page's module, draws it again when the tables grow, and has the bar at the top.
//
// A page's module exports
//   title(): string                          the heading of the browser's tab; optional
//   draw(main, {first}): Promise<void>       fetches what it needs and fills `main`; called again when tables or address change
//   keys: [[key, what it does]]              shown in the list of keys; optional
//   press(key)                               does what a key does on this page; optional
import { fetchJson, Problem } from "./api.js";
import { h, printable, put } from "./dom.js";
import { clock, zoneName } from "./format.js";
import * as state from "./state.js";

const POLL_MS = 2000;
const main = document.getElementById("main");
const MODULES = JSON.parse(document.body.dataset.modules); // by path
const KEYS = [["g h", "at a glance"], ["g g", "groups"], ["/", "search; from other pages: find a group"], ["u", "UTC or local time"], ["d", "dark, light, or as the browser"], ["?", "this list"]];

let page = {};
let shown = null; // its path
let version = null;
let drawing = false;
let again = false;
let times = 0;
let root = main; // what the page fills
let arrive = () => scrollTo(0, 0);
let seeking = false; // whether the page that comes is to be searched

async function draw(first = false) {
  if (drawing) { again = true; return; }
  drawing = true;
  main.setAttribute("aria-busy", "true");
  try {
    if (state.path() !== shown) {
      shown = state.path();
      page = await import(`./${MODULES[shown]}`);
      root = coming();
    }
    await page.draw(root, { first });
    if (seeking) seeking = !search();
    main.dataset.drawn = String(++times);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    put(root, problem(error));
    main.dataset.drawn = "problem";
  } finally {
    main.setAttribute("aria-busy", "false");
    drawing = false;
  }
  document.title = `${page.title?.() ?? "Rebalances"} · rebalance`;
  if (again) { again = false; await draw(); }
}

/** Where a page draws itself that comes in the place of another one, which stays until there is something to show. */
function coming() {
  const next = h("div");
  new MutationObserver((_, its) => { its.disconnect(); main.replaceChildren(next); arrive(); }).observe(next, { childList: true });
  return next;
}

/** Whether there is something to search in, which has the focus then. */
function search() {
  const field = main.querySelector("input[type=search]");
  field?.closest("details")?.setAttribute("open", "");
  field?.focus();
  return field !== null;
}

function problem(error) {
  const waits = /^no lakehouse|has not been tracked/.test(error.message);
  return h("div", { class: "state", role: "status" },
    h("h1", {}, waits ? "Nothing to show yet" : "This cannot be shown"),
    h("p", {}, error.message),
    waits ? h("p", {}, "Start ", h("code", {}, "rebalance run --input LOGS --lakehouse DIR"), ": this page shows what it writes, as it writes it.") : null);
}

async function poll() {
  if (!document.hidden) {
    try {
      const now = await fetchJson("version");
      say(`Up to date at ${clock(Date.now(), 0)}; times are in ${zoneName()}`);
      if (version !== null && now.version !== version) await draw();
      else if (main.dataset.drawn === "problem" && version !== null && Object.keys(now.tables).length) await draw();
      version = now.version;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      say(error.message, true);
    }
  }
  setTimeout(poll, POLL_MS);
}

function say(text, bad = false) {
  const live = document.getElementById("live");
  if (live.textContent !== text) live.textContent = text;
  live.classList.toggle("bad", bad);
}

function bar() {
  for (const anchor of document.querySelectorAll("[data-nav]")) {
    anchor.href = state.link(anchor.dataset.nav, { cluster: state.get("cluster") });
    if (anchor.dataset.nav === state.path() && !anchor.classList.contains("brand")) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  const button = document.getElementById("zone");
  button.textContent = state.zone() === "utc" ? "UTC" : "Local";
  button.setAttribute("aria-label", `Times are in ${zoneName()}: switch`);
  const theme = document.documentElement.dataset.theme ?? "auto";
  document.getElementById("theme").textContent = { auto: "Auto", dark: "Dark", light: "Light" }[theme];
}

function turnTheme() {
  const root = document.documentElement;
  const next = { auto: "dark", dark: "light", light: "auto" }[root.dataset.theme ?? "auto"];
  if (next === "auto") delete root.dataset.theme;
  else root.dataset.theme = next;
  try { localStorage.setItem("theme", next); } catch { /* it holds for this page alone */ }
  bar();
  dispatchEvent(new Event("theme"));
}

const turnZone = () => state.set({ tz: state.zone() === "utc" ? "local" : "" });

function showKeys() {
  const dialog = document.getElementById("keys");
  const all = [...(page.keys ?? []), ...KEYS];
  put(dialog.querySelector("div"), h("dl", {}, all.map(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)])));
  dialog.showModal();
}

let before = "";
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const chord = before === "g" ? `g ${event.key}` : event.key;
  before = event.key === "g" && before !== "g" ? "g" : "";
  const go = { "g h": "/", "g g": "/groups", "g m": "/members", "g f": "/findings", "g q": "/questions" }[chord];
  if (go in MODULES) location.href = state.link(go, { cluster: state.get("cluster") });
  else if (chord === "u") turnZone();
  else if (chord === "d") turnTheme();
  else if (chord === "?") showKeys();
  else if (chord === "/") {
    event.preventDefault();
    seeking = !search();
    if (seeking) location.href = state.link("/groups", { cluster: state.get("cluster") });
  } else page.press?.(event.key);
});
// A place within the page is no address of a page.
addEventListener("click", (event) => {
  const target = event.target.closest?.('a[href^="#"]:not([href^="#/"])');
  if (!target) return;
  event.preventDefault();
  const there = document.querySelector(target.getAttribute("href"));
  there?.scrollIntoView();
  there?.focus();
});
document.getElementById("menu").addEventListener("click", (event) => event.currentTarget.setAttribute("aria-expanded", String(document.querySelector(".bar").classList.toggle("open"))));
document.getElementById("zone").addEventListener("click", turnZone);
document.getElementById("theme").addEventListener("click", turnTheme);
document.getElementById("help").addEventListener("click", showKeys);
document.addEventListener("visibilitychange", () => { if (!document.hidden && version !== null) fetchJson("version").then((now) => { if (now.version !== version) { version = now.version; draw(); } }).catch(() => {}); });
const turn = () => { bar(); return draw(); };
state.onChange(turn);
// A link to another page leads there within this document. A browser that cannot do that loads the page.
window.navigation?.addEventListener("navigate", (event) => {
  const { navigationType: kind, destination } = event;
  const isOther = kind === "traverse" ? destination.sameDocument : kind !== "reload" && !destination.sameDocument;
  if (!isOther || !event.canIntercept || event.hashChange || !(new URL(destination.url).pathname in MODULES)) return;
  event.intercept({ handler: () => { arrive = () => event.scroll(); return turn(); } });
});

/** The choice of a cluster, where there are several. */
async function clusters() {
  try {
    const { rows } = await fetchJson("rows/clusters");
    if (rows.length < 2) return;
    const label = document.getElementById("clusters");
    const select = label.querySelector("select");
    const chosen = state.get("cluster");
    put(select, h("option", { value: "" }, "all"), rows.map((row) => h("option", { value: row.cluster, selected: row.cluster === chosen }, printable(row.cluster, 40))));
    select.addEventListener("change", () => state.set({ cluster: select.value }, { push: true }));
    label.hidden = false;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
  }
}

bar();
// Before the first look at the tables: what they get during it is seen as a change.
if (!state.saved) version = await fetchJson("version").then((now) => now.version, () => null);
await draw(true);
if (!state.saved) { await clusters(); poll(); }
