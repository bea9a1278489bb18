// The state of a page is in its address, so that a link shows the same to everybody. The zone and the theme are the reader's own.
// A report that was saved is one file: there the whole address stands behind the #.

const listeners = new Set();

/** Whether this is a saved report, which holds all answers. */
export const saved = document.getElementById("answers") !== null;

const place = () => (saved ? new URL(location.hash.startsWith("#/") ? location.hash.slice(1) : document.body.dataset.start, "http://saved") : location);
const address = (path, search) => (saved ? "#" : "") + path + (search ? `?${search}` : "");

/** Which page is shown. */
export const path = () => place().pathname;

/** All values of the address. */
export const values = () => new URLSearchParams(place().search);

/** A value of the address; "" if it is not there. */
export const get = (name) => values().get(name) ?? "";

/** A whole number of the address; null if there is none. */
export function number(name) {
  const text = get(name);
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/** Sets values of the address; "" and null remove one. `push`: the back button returns to the state before. */
export function set(changes, { push = false, tell = true } = {}) {
  const search = changed(values(), changes);
  if (search === values().toString()) return;
  history[push ? "pushState" : "replaceState"](null, "", address(path(), search));
  if (tell) for (const listener of listeners) listener();
}

/** Calls `listener` when the address changes within the page. */
export const onChange = (listener) => listeners.add(listener);

if (saved || !window.navigation) addEventListener(saved ? "hashchange" : "popstate", () => { for (const listener of listeners) listener(); }); // else shell.js does it

function changed(search, changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") search.delete(name);
    else search.set(name, value);
  }
  return search.toString();
}

/** The address of a page with values. The zone goes along. */
export const link = (to, changes = {}) => address(to, changed(new URLSearchParams(), { tz: get("tz"), ...changes }));

/** What a click on a link does that sets values of this page: it follows the link itself only where that opens elsewhere. */
export const following = (changes) => (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  set(changes, { push: true });
};

export const groupLink = (cluster, group, changes = {}) => link("/group", { cluster, group, ...changes });
export const rebalanceLink = (row) => link("/rebalance", { cluster: row.cluster, group: row.group_id, id: row.id });

/** "utc" or "local". */
export const zone = () => (get("tz") === "local" ? "local" : "utc");
