// Counts nodes by state and finds the state that needs attention.

/**
 * @typedef {import("../types.js").Progress} Progress
 * @typedef {import("../types.js").Shown} Shown
 *
 * @typedef {"gate" | "failed" | "stopped"} Sign
 *
 * @typedef {object} Tally
 * @property {Partial<Record<Shown, number>>} counts
 * @property {number} all
 * @property {Sign | null} sign state that needs attention: gate, else failed, else stopped
 */

/** In display order. @type {readonly Shown[]} */
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

/** @type {readonly Sign[]} */
const SIGNS = ["gate", "failed", "stopped"];

/**
 * @param {Progress} progress
 * @returns {Shown}
 */
export function displayState(progress) {
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
    const state = displayState(progress);
    counts[state] = (counts[state] ?? 0) + 1;
    all++;
  }
  return { counts, all, sign: SIGNS.find((state) => counts[state]) ?? null };
}
