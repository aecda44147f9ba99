/** Relative times by the server's clock; the tooltip shows the exact time. */

import { now } from "../api/clock.js";
import { html } from "../vendor/preact.js";

/** @type {[number, string][]} */
const UNITS = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

/** A duration in its two largest units: "2 h 5 min". @param {number} seconds */
export function formatDuration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const at = UNITS.findIndex(([size]) => whole >= size);
  const [size, unit] = UNITS[at] ?? [1, "s"];
  const first = `${Math.floor(whole / size)} ${unit}`;
  const below = UNITS[at + 1];
  const left = below ? Math.floor((whole % size) / below[0]) : 0;
  return below && left > 0 && whole / size < 10 ? `${first} ${left} ${below[1]}` : first;
}

const [MINUTE, HOUR, DAY] = [60, 3600, 86_400];

/** A time that has passed, in one unit: "9 min". As the command line. @param {number} seconds */
export function formatAge(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min`;
  if (whole < 2 * DAY) return `${Math.floor(whole / HOUR)} h`;
  return `${Math.floor(whole / DAY)} days`;
}

/** A time in the browser's locale and time zone. @param {string} at */
export function formatTime(at) {
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
}

/** A time relative to now, past or future. @param {{at: string | null | undefined}} props */
export function Ago({ at }) {
  if (!at) return html`<span class="muted">never</span>`;
  const seconds = (Date.parse(at) - now.value) / 1000;
  const text = seconds >= 0.5 ? `in ${formatDuration(seconds)}` : `${formatAge(-seconds)} ago`;
  return html`<time class="unbroken" dateTime=${at} title=${formatTime(at)}>${text}</time>`;
}
