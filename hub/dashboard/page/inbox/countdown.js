/** A deadline that runs down, and what happens then. */

import { now } from "../api/clock.js";
import { span } from "../parts/ago.js";
import { html, useComputed } from "../vendor/preact.js";
import { AT_DEADLINE } from "./words.js";

/** @typedef {import("../api/documents.js").Hook} Hook */

/** Seconds from which on it is pressing. */
const PRESSING = 300;

/** Only what changes is drawn anew each second. @param {{hook: Hook}} props */
export function Countdown({ hook }) {
  const at = Date.parse(hook.deadline);
  const said = useComputed(() => left(at));
  const pressing = useComputed(() => (at - now.value < PRESSING * 1000 ? "true" : undefined));
  return html`<time class="countdown" dateTime=${hook.deadline} title=${`${hook.deadline}: ${AT_DEADLINE[hook.on_timeout]}`}
    data-pressing=${pressing}>${said}</time>`;
}

/** @param {number} at milliseconds since 1970 */
function left(at) {
  const seconds = (at - now.value) / 1000;
  return seconds > 0 ? `${span(seconds)} left` : "its time is over";
}

/** How much of the time is over, as a bar. @param {{hook: Hook}} props */
export function TimeBar({ hook }) {
  const begun = Date.parse(hook.opened_at);
  const whole = Date.parse(hook.deadline) - begun;
  // In steps of a hundredth, so that it is not drawn anew each second.
  const value = useComputed(() =>
    Math.min(100, Math.max(0, Math.floor((100 * (now.value - begun)) / whole))),
  );
  return html`<progress class="timebar" max="100" value=${value} aria-label="Time that is over"></progress>`;
}
