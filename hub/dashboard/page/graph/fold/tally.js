// How many of some nodes are in which state, and whether one of them wants to be seen.

/**
 * @typedef {import("../shapes.js").Progress} Progress
 * @typedef {import("../shapes.js").Shown} Shown
 *
 * @typedef {object} Tally
 * @property {Partial<Record<Shown, number>>} counts
 * @property {number} all
 * @property {Shown | null} sign what of them is told first: a gate, else a failure, else a stop
 */

/** In the order in which they are shown. @type {readonly Shown[]} */
export const ORDER = [
  "gate",
  "failed",
  "stopped",
  "running",
  "parked",
  "ready",
  "waiting",
  "done",
  "dropped",
];

/** @type {readonly Shown[]} */
const SIGNS = ["gate", "failed", "stopped"];

/**
 * @param {Progress} progress
 * @returns {Shown}
 */
export function shown(progress) {
  return progress.state === "parked" && progress.hook ? "gate" : progress.state;
}

/**
 * @param {Iterable<Progress>} some
 * @returns {Tally}
 */
export function tally(some) {
  /** @type {Tally["counts"]} */
  const counts = {};
  let all = 0;
  for (const progress of some) {
    const state = shown(progress);
    counts[state] = (counts[state] ?? 0) + 1;
    all++;
  }
  return { counts, all, sign: SIGNS.find((state) => counts[state]) ?? null };
}
