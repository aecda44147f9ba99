/** How a subscription fares, in a state, a word and a sentence. Pure. */

/** @typedef {import("./shapes.js").Subscription} Subscription */

/** @param {Subscription} one @returns {{state: string, word: string, says: string}} */
export function health({ state, reason, failures }) {
  const given = failures === 1 ? "1 delivery was" : `${failures} deliveries were`;
  const failing = failures > 0 ? `${given} given up since one arrived last.` : "";
  if (state === "disabled") {
    const why = reason ? `${reason}${/[.!?]$/.test(reason) ? "" : "."}` : "";
    return { state: "stopped", word: "disabled", says: [why, failing].filter(Boolean).join(" ") };
  }
  if (failures > 0) return { state: "failed", word: "failing", says: failing };
  return { state: "done", word: "enabled", says: "" };
}

/** Delivery's state -> how it is drawn. @type {Record<string, string>} */
export const DELIVERY = { pending: "parked", delivered: "done", dead: "failed" };

/** Where it was made, and what that means. @param {Subscription} one */
export function origin({ origin: from }) {
  return {
    api: "",
    configuration:
      "It is in the server's configuration ([[subscriptions]]): whoever runs the server changes it there.",
    environment:
      "The environment of a stack names it (event_sinks): it is changed with an update of that stack.",
  }[from];
}
