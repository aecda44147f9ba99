/** The progress of a change: nodes by state, as a bar and as text. */

import { html } from "../vendor/preact.js";

/** States in display order with their labels. @type {readonly [string, string][]} */
const ORDER = [
  ["done", "done"],
  ["failed", "failed"],
  ["stopped", "stopped"],
  ["dropped", "dropped"],
  ["running", "running"],
  ["parked", "parked"],
  ["ready", "ready"],
  ["waiting", "waiting"],
];

/**
 * The segments of the bar in order, and their text.
 * @param {Record<string, number>} nodes state -> how many
 */
export function progress(nodes) {
  const parts = ORDER.map(([state, word]) => ({ state, word, many: nodes[state] ?? 0 })).filter(
    (one) => one.many > 0,
  );
  const all = parts.reduce((sum, one) => sum + one.many, 0);
  const text = parts.map((one) => `${one.many} ${one.word}`).join(", ");
  return {
    parts,
    all,
    done: nodes.done ?? 0,
    words: all ? `${text}, of ${all} nodes` : "no changes",
  };
}

/** @param {{nodes: Record<string, number>}} props */
export function Progress({ nodes }) {
  const { parts, all, done, words } = progress(nodes);
  if (all === 0) return html`<span class="muted">no changes</span>`;
  const bad = parts.filter((one) => ["failed", "stopped", "dropped"].includes(one.state));
  return html`<div class="stacks-progress" title=${words}>
    <div class="stacks-bar" role="img" aria-label=${words}>
      ${parts.map(
        (one) =>
          html`<span key=${one.state} data-state=${one.state} style=${{ flexGrow: one.many }}></span>`,
      )}
    </div>
    <span class="stacks-said" aria-hidden="true">
      ${done} of ${all}${bad.map((one) => html`<span key=${one.state} data-state=${one.state}>${one.many} ${one.word}</span>`)}
    </span>
  </div>`;
}
