/** Events in words. Pure. */

/** @typedef {import("../api/documents.js").CloudEvent} CloudEvent */

/** @type {Record<string, string>} */
const OF_HOOKS = {
  waiting: "waits at",
  answered: "was answered at",
  expired: "was not answered in time at",
  superseded: "waits no more at",
  approved: "was approved, and needs more approvals, at",
  progress: "waits longer at",
  "handed-over": "was handed over at",
  reminder: "still waits at",
  escalated: "waits for others, too, at",
  unheard: "waits, and nobody could be told, at",
};

/** @type {Record<string, string>} */
const MOMENTS = {
  started: "began",
  completed: "is done",
  failed: "failed",
  stopped: "was stopped",
  progress: "goes on",
  retrying: "failed, and is tried again",
};

/**
 * One event as a sentence: "db waits at pre-create".
 * @param {CloudEvent} event
 */
export function inWords(event) {
  const [, of = "", what = "", moment = ""] = event.type.split(".");
  const { data } = event;
  const subject = event.subject ?? event.stackpath ?? "";
  if (of === "hook") {
    const { hook } = data;
    const about = subject || "the stack";
    const said = `${about} ${OF_HOOKS[what] ?? what} ${hook?.point ?? ""}`.trim();
    return said + decidedBy(what, data);
  }
  if (of === "delivery") {
    const target = data.subscription?.target ?? "a subscription";
    return what === "dead" ? `${target} could not be told` : `${target} was told`;
  }
  if (of === "resource") return `${subject}: ${what} ${MOMENTS[moment] ?? moment}${failed(data)}`;
  if (of === "stack") {
    const reason = moment === "failed" || moment === "stopped" ? `: ${data.stack?.reason}` : "";
    return `${subject || "the stack"}: ${what} ${MOMENTS[moment] ?? moment}${reason}`;
  }
  return event.type;
}

/** @param {string} what @param {any} data */
function decidedBy(what, data) {
  const by = data.hook?.decided_by ?? data.said?.by;
  const reason = data.said?.reason ? `: ${data.said.reason}` : "";
  if (what === "answered" && by) return `, ${data.hook.decision} by ${by}${reason}`;
  if ((what === "approved" || what === "progress") && data.said?.by) {
    return ` (${data.said.by})${reason}`;
  }
  if (what === "handed-over" && data.said?.to) return ` to ${data.said.to}${reason}`;
  return "";
}

/** @param {any} data */
function failed(data) {
  const { status, reason } = data.resource ?? {};
  return status === "FAILED" && reason ? `: ${reason}` : "";
}

/**
 * What an event is to somebody who looks for what matters: its tone.
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
