/** A cache of hooks by ID, and how new data changes it. Pure. */

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {ReadonlyMap<string, Hook>} Known */

/** Maximum number of ended hooks kept. */
const MOST_ENDED = 500;

/**
 * Adds hooks. A hook that ended stays ended, even if an older response says that it waits.
 * @param {Known} known @param {readonly Hook[]} news @returns {Known}
 */
export function withHooks(known, news) {
  const next = new Map(known);
  for (const one of news) {
    const was = next.get(one.id);
    if (was && was.state !== "waiting" && one.state === "waiting") continue;
    next.set(one.id, one);
  }
  return bounded(next);
}

/**
 * IDs of cached waiting hooks that are not in a complete list of waiting hooks.
 * @param {Known} known @param {readonly Hook[]} all @returns {string[]}
 */
export function missing(known, all) {
  const there = new Set(all.map((one) => one.id));
  return [...known.values()]
    .filter((one) => one.state === "waiting" && !there.has(one.id))
    .map((one) => one.id);
}

/** @param {Known} known @param {readonly string[]} ids @returns {Known} */
export function withoutHooks(known, ids) {
  const next = new Map(known);
  for (const id of ids) next.delete(id);
  return next;
}

/** The waiting hooks, oldest first. @param {Known} known @returns {Hook[]} */
export function waitingInOrder(known) {
  return [...known.values()].filter((one) => one.state === "waiting").sort(byAge);
}

/** @param {Hook} one @param {Hook} other */
export function byAge(one, other) {
  if (one.opened_at !== other.opened_at) return one.opened_at < other.opened_at ? -1 : 1;
  return one.id < other.id ? -1 : 1;
}

/** @param {Map<string, Hook>} known @returns {Known} */
function bounded(known) {
  const ended = [...known.values()].filter((one) => one.state !== "waiting");
  for (const one of ended.slice(0, Math.max(0, ended.length - MOST_ENDED))) known.delete(one.id);
  return known;
}
