/** Routing by the fragment of the address. */

import { signal } from "../vendor/preact.js";

/**
 * page: "" if the address names only a project. rest: the path segments after the page's name.
 * @typedef {{project: string, page: string, rest: string[], query: URLSearchParams}} Place
 */

/** @param {string} hash @returns {Place} */
function parseHash(hash) {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?");
  const [project = "", page = "", ...rest] = path.split("/").map(decodeSegment);
  return { project, page, rest: rest.filter(Boolean), query: new URLSearchParams(query) };
}

/** @param {string} text */
function decodeSegment(text) {
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

export const currentPlace = signal(parseHash(location.hash));

/** Navigates to an address made by `href`. @param {string} target */
export function navigate(target) {
  location.hash = target;
}

/**
 * Changes query parameters without adding a history entry.
 * @param {Record<string, string>} changed "" removes a parameter
 */
export function setQuery(changed) {
  const { project, page, rest, query } = currentPlace.value;
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changed)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  const search = next.toString();
  history.replaceState(null, "", href(project, page, ...rest) + (search ? `?${search}` : ""));
  shownHash = location.hash;
  currentPlace.value = parseHash(location.hash);
}

/** Decides whether navigation may proceed. @type {((then: () => void) => boolean) | null} */
let activeGuard = null;
let shownHash = location.hash;

/**
 * Calls a guard before navigation, until the returned function is called.
 * @param {(then: () => void) => boolean} check returns false to stay; the page may navigate
 *   later by calling `then`
 */
export function guard(check) {
  activeGuard = check;
  return () => {
    if (activeGuard === check) activeGuard = null;
  };
}

/** Runs an action that leaves the page, unless the guard stops it. @param {() => void} then */
export function leave(then) {
  if (!activeGuard || activeGuard(then)) then();
}

addEventListener("hashchange", () => {
  const target = location.hash;
  const released = () => {
    activeGuard = null;
    navigate(target);
  };
  if (activeGuard && target !== shownHash && !activeGuard(released)) {
    history.pushState(null, "", shownHash);
    return;
  }
  shownHash = target;
  currentPlace.value = parseHash(target);
});
