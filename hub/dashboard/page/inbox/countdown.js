/** A countdown to the deadline of a hook. */

import { now } from "../api/clock.js";
import { formatDuration, formatTime } from "../parts/ago.js";
import { html, useComputed } from "../vendor/preact.js";
import { AT_DEADLINE } from "./hook_text.js";

/** @typedef {import("../api/documents.js").Hook} Hook */

/** Remaining seconds from which the countdown is highlighted. */
const URGENT_SECONDS = 300;

/** Only the text is updated each second. @param {{hook: Hook}} props */
export function Countdown({ hook }) {
  return hook.deadline ? html`<${TimeLeft} hook=${hook} deadline=${hook.deadline} />` : null;
}

/** @param {{hook: Hook, deadline: string}} props */
function TimeLeft({ hook, deadline }) {
  const at = Date.parse(deadline);
  const text = useComputed(() => remainingText(at));
  const urgent = useComputed(() => (at - now.value < URGENT_SECONDS * 1000 ? "true" : undefined));
  return html`<time class="countdown" dateTime=${deadline} title=${`${formatTime(deadline)}: ${AT_DEADLINE[hook.on_timeout]}`}
    data-pressing=${urgent}>${text}</time>`;
}

/** @param {number} at milliseconds since 1970 */
function remainingText(at) {
  const seconds = (at - now.value) / 1000;
  return seconds > 0 ? `${formatDuration(seconds)} left` : "deadline passed";
}

/** The elapsed share of the time as a bar. @param {{hook: Hook}} props */
export function TimeBar({ hook }) {
  const begun = Date.parse(hook.opened_at);
  const whole = Date.parse(hook.deadline ?? "") - begun;
  // In steps of one percent, to avoid an update each second.
  const value = useComputed(() =>
    Math.min(100, Math.max(0, Math.floor((100 * (now.value - begun)) / whole))),
  );
  return html`<progress class="timebar" max="100" value=${value} aria-label="Time elapsed"></progress>`;
}
