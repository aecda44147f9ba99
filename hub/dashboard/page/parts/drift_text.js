// Observed states of resources in words.

/** @type {Record<string, string>} */
const STATES = {
  missing: "The resource does not exist",
  changed: "The resource has changed",
  degraded: "The resource does not work",
  unknown: "The state of the resource is not known",
};

/**
 * What was observed, as a sentence.
 *
 * @param {{state: string, reason: string}} drift
 * @returns {string}
 */
export function driftText({ state, reason }) {
  return `${STATES[state] ?? state}${reason ? `: ${reason}` : ""}.`;
}

/**
 * The text of a badge, as it follows "drift: "; null: there is no drift, or none is known.
 *
 * @param {{state: string, last_known?: {state: string} | null}} drift
 * @returns {string | null}
 */
export function badgeText({ state, last_known }) {
  if (state !== "unknown") return state;
  return last_known ? `${last_known.state}, now unknown` : null;
}
