/** A countdown to the deadline of a hook. */

import { now } from "../api/clock.js";
import { span } from "../parts/ago.js";
import { html, useComputed } from "../vendor/preact.js";
import { AT_DEADLINE } from "./hook_text.js";

/** @typedef {import("../api/documents.js").Hook} Hook */

/** Remaining seconds from which the countdown is highlighted. */
const PRESSING = 300;

/** Only the text is updated each second. @param {{hook: Hook}} props */
export function Countdown({ hook }) {
  const at = Date.parse(hook.deadline);
  const text = useComputed(() => left(at));
  const pressing = useComputed(() => (at - now.value < PRESSING * 1000 ? "true" : undefined));
  return html`<time class="countdown" dateTime=${hook.deadline} title=${`${hook.deadline}: ${AT_DEADLINE[hook.on_timeout]}`}
    data-pressing=${pressing}>${text}</time>`;
}

/** @param {number} at milliseconds since 1970 */
function left(at) {
  const seconds = (at - now.value) / 1000;
  return seconds > 0 ? `${span(seconds)} left` : "deadline passed";
}

/** The elapsed share of the time as a bar. @param {{hook: Hook}} props */
export function TimeBar({ hook }) {
  const begun = Date.parse(hook.opened_at);
  const whole = Date.parse(hook.deadline) - begun;
  // In steps of one percent, to avoid an update each second.
  const value = useComputed(() =>
    Math.min(100, Math.max(0, Math.floor((100 * (now.value - begun)) / whole))),
  );
  return html`<progress class="timebar" max="100" value=${value} aria-label="Time elapsed"></progress>`;
}
