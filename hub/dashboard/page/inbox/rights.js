/** Who may say what to a hook; the server decides, and this is what is offered. Pure. */

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../api/documents.js").Decision} Decision */
/** @typedef {{name: string, roles: readonly string[], rights: readonly string[]}} Somebody */

/** Decisions that are approvals where more than one is needed. */
const APPROVES = new Set(["continue", "step", "run", "patch"]);

/**
 * Why somebody may not answer; "": they may.
 * @param {Hook} hook @param {Somebody | null} who
 */
export function whyNot(hook, who) {
  if (!who?.rights.includes("answer")) return "You may look, and not answer.";
  if (hook.exclude === "requester" && hook.requested_by === who.name)
    return "You asked for this change, so somebody else is to answer.";
  if (hook.answer_by.length === 0) return "";
  const me = [`user:${who.name}`, ...who.roles.map((role) => `role:${role}`)];
  return hook.answer_by.some((one) => me.includes(one)) ? "" : "It is for others to answer.";
}

/** Whether somebody has given an approval already. @param {Hook} hook @param {Somebody | null} who */
export function hasApproved(hook, who) {
  return who !== null && hook.approvals.by.includes(who.name);
}

/**
 * What somebody may decide.
 * @param {Hook} hook @param {Somebody | null} who @returns {Decision[]}
 */
export function offered(hook, who) {
  if (hook.state !== "waiting" || whyNot(hook, who)) return [];
  return hook.allowed.filter((one) => !(hasApproved(hook, who) && APPROVES.has(one)));
}

/** Whether it waits for somebody in person. @param {Hook} hook @param {Somebody | null} who */
export function isMine(hook, who) {
  return hook.state === "waiting" && !whyNot(hook, who) && !hasApproved(hook, who);
}
