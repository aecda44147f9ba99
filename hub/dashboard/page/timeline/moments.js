/** Moments of a timeline: where one goes next, and what stands out. Pure. */

import { toneOf } from "../stack/words.js";

/** @typedef {import("../api/documents.js").CloudEvent} CloudEvent */
/** @typedef {{at: number, tone: string}} Mark at: the count of events with it, from 1 */

/** What is marked. @type {ReadonlySet<string>} */
const MARKED = new Set(["gate", "failed", "stopped"]);

/**
 * Where something waited, failed or was stopped.
 * @param {readonly CloudEvent[]} events @returns {Mark[]}
 */
export function marksOf(events) {
  return events
    .map((event, index) => ({ at: index + 1, tone: toneOf(event) }))
    .filter((one) => MARKED.has(one.tone));
}

/**
 * The next mark from a moment on, or the one before; the end where there is none.
 * @param {readonly Mark[]} marks @param {number} at @param {1 | -1} by @param {number} length
 */
export function nextMark(marks, at, by, length) {
  if (by > 0) return marks.find((one) => one.at > at)?.at ?? length;
  return marks.findLast((one) => one.at < at)?.at ?? 0;
}

/** Times a second that a playing timeline moves on. */
export const BEATS = 4;
/** Seconds in which it comes to its end, however many events there are. */
const LONGEST = 30;

/** Events that a beat goes on by. @param {number} length */
export function pace(length) {
  return Math.max(1, Math.ceil(length / (BEATS * LONGEST)));
}
