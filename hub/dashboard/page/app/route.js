/** Where one is: the part of the address behind the #. */

import { signal } from "../vendor/preact.js";

/**
 * page: "" where only a project is named. rest: what follows the page's name.
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

/** Go to an address that `href` made. @param {string} to */
export function go(to) {
  location.hash = to;
}

/**
 * Change what follows the `?`, without a step in the history.
 * @param {Record<string, string>} changed "" takes one away
 */
export function ask(changed) {
  const { project, page, rest, query } = here.value;
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changed)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  const said = next.toString();
  history.replaceState(null, "", href(project, page, ...rest) + (said ? `?${said}` : ""));
  shown = location.hash;
  here.value = place(location.hash);
}

/** Says whether one may leave. @type {((then: () => void) => boolean) | null} */
let keeper = null;
let shown = location.hash;

/**
 * Have a page asked before one leaves it, until the function that is returned is called.
 * @param {(then: () => void) => boolean} asked false: one stays; the page leaves by itself, later,
 *   by calling `then`
 */
export function guard(asked) {
  keeper = asked;
  return () => {
    if (keeper === asked) keeper = null;
  };
}

/** Do what leaves the page, unless that has something to say first. @param {() => void} then */
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
