/** What is known of hooks, kept by id, and what news makes of it. Pure. */

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {ReadonlyMap<string, Hook>} Known */

/** So many that wait no more are remembered. */
const MOST_ENDED = 500;

/**
 * With a hook as it is now. One that ended stays ended, whatever older answers say.
 * @param {Known} known @param {readonly Hook[]} news @returns {Known}
 */
export function learned(known, news) {
  const next = new Map(known);
  for (const one of news) {
    const was = next.get(one.id);
    if (was && was.state !== "waiting" && one.state === "waiting") continue;
    next.set(one.id, one);
  }
  return bounded(next);
}

/**
 * After all that wait were read: those that wait no more, though they did.
 * @param {Known} known @param {readonly Hook[]} all @returns {string[]}
 */
export function missing(known, all) {
  const there = new Set(all.map((one) => one.id));
  return [...known.values()]
    .filter((one) => one.state === "waiting" && !there.has(one.id))
    .map((one) => one.id);
}

/** @param {Known} known @param {readonly string[]} ids @returns {Known} */
export function forgotten(known, ids) {
  const next = new Map(known);
  for (const id of ids) next.delete(id);
  return next;
}

/** Those that wait, oldest first. @param {Known} known @returns {Hook[]} */
export function inOrder(known) {
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
