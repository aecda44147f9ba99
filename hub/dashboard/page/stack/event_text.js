/** Events as text. Pure. */

/** @typedef {import("../api/documents.js").CloudEvent} CloudEvent */

/** @type {Record<string, string>} */
const HOOK_TEXTS = {
  waiting: "is waiting for approval at",
  answered: "was answered at",
  expired: "timed out at",
  superseded: "was superseded at",
  approved: "was approved and needs more approvals at",
  progress: "had its deadline extended at",
  "handed-over": "was handed over at",
  reminder: "is still waiting for approval at",
  escalated: "was escalated at",
  undeliverable: "could not notify any subscriber at",
};

/** @type {Record<string, string>} */
const MOMENTS = {
  started: "started",
  completed: "completed",
  failed: "failed",
  stopped: "stopped",
  progress: "in progress",
  retrying: "failed and will be retried",
  restarted: "restarted because its process ended",
};

/**
 * One event as a sentence: "db is waiting for approval at pre-create".
 * @param {CloudEvent} event
 */
export function eventText(event) {
  const [, of = "", what = "", moment = ""] = event.type.split(".");
  const { data } = event;
  const subject = event.subject ?? event.stackpath ?? "";
  if (of === "hook") {
    const { hook } = data;
    const about = subject || "the stack";
    const sentence = `${about} ${HOOK_TEXTS[what] ?? what} ${hook?.point ?? ""}`.trim();
    return sentence + decisionSuffix(what, data);
  }
  if (of === "delivery") {
    const target = data.subscription?.target ?? "a subscription";
    return what === "dead" ? `delivery to ${target} is dead` : `delivered to ${target}`;
  }
  if (of === "resource")
    return `${subject}: ${what} ${MOMENTS[moment] ?? moment}${failureSuffix(data)}`;
  if (of === "stack") {
    const reason = moment === "failed" || moment === "stopped" ? `: ${data.stack?.reason}` : "";
    const name = subject ? `stack ${subject}` : "the stack";
    return `${name}: ${what} ${MOMENTS[moment] ?? moment}${reason}`;
  }
  return event.type;
}

/** @param {string} what @param {any} data */
function decisionSuffix(what, data) {
  const user = data.hook?.decided_by ?? data.details?.by;
  const reason = data.details?.reason ? `: ${data.details.reason}` : "";
  if (what === "answered" && user) return `, ${data.hook.decision} by ${user}${reason}`;
  if ((what === "approved" || what === "progress") && data.details?.by) {
    return ` (${data.details.by})${reason}`;
  }
  if (what === "handed-over" && data.details?.to) return ` to ${data.details.to}${reason}`;
  return "";
}

/** @param {any} data */
function failureSuffix(data) {
  const { status, reason } = data.resource ?? {};
  return status === "FAILED" && reason ? `: ${reason}` : "";
}

/**
 * The tone of an event: how it is highlighted.
 * @param {CloudEvent} event
 * @returns {"gate" | "failed" | "stopped" | "done" | "running" | "other"}
 */
export function toneOf(event) {
  const [, of, , moment] = event.type.split(".");
  const last = event.type.split(".").at(-1) ?? "";
  if (of === "hook") return last === "waiting" ? "gate" : last === "expired" ? "stopped" : "other";
  if (of === "delivery") return last === "dead" ? "failed" : "other";
  if (moment === "failed" || moment === "retrying") return "failed";
  if (moment === "stopped") return "stopped";
  if (moment === "completed") return "done";
  return moment === "started" ? "running" : "other";
}

/** Tone of an event and its label. @type {Record<string, string>} */
export const TONE_LABELS = {
  gate: "waiting",
  failed: "failed",
  stopped: "stopped",
  done: "done",
  running: "started",
  other: "info",
};
