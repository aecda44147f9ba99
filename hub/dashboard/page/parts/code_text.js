/** Sentences with commands and names in backticks, as the server writes them. */

import { html } from "../vendor/preact.js";

/** The sentence with these parts as code. @param {string | null | undefined} sentence */
export function withCode(sentence) {
  return (sentence ?? "")
    .split(/`([^`]+)`/)
    .map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : part));
}
