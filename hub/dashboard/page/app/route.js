/** Routing by the fragment of the address. */

import { signal } from "../vendor/preact.js";

/**
 * page: "" if the address names only a project. rest: the path segments after the page's name.
 * @typedef {{project: string, page: string, rest: string[], query: URLSearchParams}} Place
 */

/** @param {string} hash @returns {Place} */
export function place(hash) {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?");
  const [project = "", page = "", ...rest] = path.split("/").map(decoded);
  return { project, page, rest: rest.filter(Boolean), query: new URLSearchParams(query) };
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * The address of a page, for links.
 * @param {string} project @param {string} page @param {...string} rest
 */
export function href(project, page, ...rest) {
  return `#/${[project, page, ...rest].map(encodeURIComponent).join("/")}`;
}

export const here = signal(place(location.hash));

/** Navigates to an address made by `href`. @param {string} to */
export function go(to) {
  location.hash = to;
}

/**
 * Changes query parameters without adding a history entry.
 * @param {Record<string, string>} changed "" removes a parameter
 */
export function ask(changed) {
  const { project, page, rest, query } = here.value;
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changed)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  const search = next.toString();
  history.replaceState(null, "", href(project, page, ...rest) + (search ? `?${search}` : ""));
  shown = location.hash;
  here.value = place(location.hash);
}

/** Decides whether navigation may proceed. @type {((then: () => void) => boolean) | null} */
let keeper = null;
let shown = location.hash;

/**
 * Calls a guard before navigation, until the returned function is called.
 * @param {(then: () => void) => boolean} check returns false to stay; the page may navigate
 *   later by calling `then`
 */
export function guard(check) {
  keeper = check;
  return () => {
    if (keeper === check) keeper = null;
  };
}

/** Runs an action that leaves the page, unless the guard stops it. @param {() => void} then */
export function leave(then) {
  if (!keeper || keeper(then)) then();
}

addEventListener("hashchange", () => {
  const to = location.hash;
  const released = () => {
    keeper = null;
    go(to);
  };
  if (keeper && to !== shown && !keeper(released)) {
    history.pushState(null, "", shown);
    return;
  }
  shown = to;
  here.value = place(to);
});
