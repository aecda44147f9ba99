/** Markers and playback speed of the timeline. Pure. */

import { toneOf } from "../stack/event_text.js";

/** @typedef {import("../api/documents.js").CloudEvent} CloudEvent */
/** @typedef {{at: number, tone: string}} Marker at: number of the event, from 1 */

/** Event tones that get a marker. @type {ReadonlySet<string>} */
const MARKED = new Set(["gate", "failed", "stopped"]);

/**
 * The events at which a node waited for approval, failed or was stopped.
 * @param {readonly CloudEvent[]} events @returns {Marker[]}
 */
export function markersOf(events) {
  return events
    .map((event, index) => ({ at: index + 1, tone: toneOf(event) }))
    .filter((one) => MARKED.has(one.tone));
}

/**
 * The next marker in a direction, or the end of the timeline.
 * @param {readonly Marker[]} marks @param {number} at @param {1 | -1} by @param {number} length
 */
export function nextMarker(marks, at, by, length) {
  if (by > 0) return marks.find((one) => one.at > at)?.at ?? length;
  return marks.findLast((one) => one.at < at)?.at ?? 0;
}

/** Playback steps per second. */
export const STEPS_PER_SECOND = 4;
/** Maximum duration of the playback in seconds. */
const LONGEST = 30;

/** Events per playback step. @param {number} length */
export function pace(length) {
  return Math.max(1, Math.ceil(length / (STEPS_PER_SECOND * LONGEST)));
}
