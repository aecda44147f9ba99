/** Names and types that break between their words, not within them. */

import { html } from "../vendor/preact.js";

/** After each of these characters, a line may end. */
const ENDS = /(?<=[_./:-])/;

/** @param {{text: string}} props */
export function Breakable({ text }) {
  return text.split(ENDS).map((part, at) => (at === 0 ? part : html`<wbr />${part}`));
}
