/** The health of a subscription as badge state, label and text. Pure. */

/** @typedef {import("./types.js").Subscription} Subscription */

/** @param {Subscription} subscription @returns {{state: string, word: string, text: string}} */
export function health({ state, reason, failures }) {
  const count = failures === 1 ? "1 dead delivery" : `${failures} dead deliveries`;
  const failing = failures > 0 ? `${count} since the last successful one.` : "";
  if (state === "disabled") {
    const why = reason ? `${reason}${/[.!?]$/.test(reason) ? "" : "."}` : "";
    return { state: "stopped", word: "disabled", text: [why, failing].filter(Boolean).join(" ") };
  }
  if (failures > 0) return { state: "failed", word: "failing", text: failing };
  return { state: "done", word: "enabled", text: "" };
}

/** Delivery state to badge state. @type {Record<string, string>} */
export const DELIVERY = { pending: "parked", delivered: "done", dead: "failed" };

/** Where the subscription is defined and how to change it. @param {Subscription} subscription */
export function origin({ origin: from }) {
  return {
    api: "",
    configuration:
      "Defined in the server configuration ([[subscriptions]]). The operator changes it there.",
    environment:
      "Defined in the environment of a stack (event_sinks). Update that stack to change it.",
  }[from];
}
