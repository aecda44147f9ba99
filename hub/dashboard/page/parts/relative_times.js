/** Sentences of the server with relative times. */

import { now } from "../api/clock.js";
import { html } from "../vendor/preact.js";
import { Ago, formatAge, formatDuration, formatTime } from "./ago.js";

const TIME = /((?: since | until )?\d{4}-\d\d-\d\dT[\d:.]+Z)/;

/** The sentence with relative times. @param {string} sentence */
export function withRelativeTimes(sentence) {
  return sentence.split(TIME).map((part) => {
    const at = part.match(/\d{4}-\d\d-\d\dT[\d:.]+Z$/)?.[0];
    if (!at || !TIME.test(part)) return part;
    if (part === at) return html`<${Ago} at=${at} />`;
    return html`<${Span} at=${at} past=${part.startsWith(" since")} />`;
  });
}

/** The time since or until a moment, after a space. @param {{at: string, past: boolean}} props */
function Span({ at, past }) {
  const seconds = ((Date.parse(at) - now.value) / 1000) * (past ? -1 : 1);
  // The moment has come, and the next event will say what follows.
  if (!past && seconds < 1) return null;
  return html`${" "}<time class="unbroken" dateTime=${at} title=${formatTime(at)}>${past ? `for ${formatAge(seconds)}` : `for another ${formatDuration(seconds)}`}</time>`;
}
