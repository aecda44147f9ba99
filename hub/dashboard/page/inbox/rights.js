/** Which decisions to offer a user. The server enforces the rules. Pure. */

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../api/documents.js").Decision} Decision */
/** @typedef {{name: string, roles: readonly string[], rights: readonly string[]}} User */

/** Decisions that count as approvals. */
const APPROVES = new Set(["continue", "step", "run", "patch"]);

/**
 * Why the user may not answer; "" if the user may.
 * @param {Hook} hook @param {User | null} who
 */
export function denialReason(hook, who) {
  if (!who?.rights.includes("answer")) return "You do not have permission to answer hooks.";
  if (hook.exclude === "requester" && hook.requested_by === who.name)
    return "You requested this change, so another approver must answer.";
  if (hook.answer_by.length === 0) return "";
  const me = [`user:${who.name}`, ...who.roles.map((role) => `role:${role}`)];
  return hook.answer_by.some((one) => me.includes(one))
    ? ""
    : "You are not an approver of this hook.";
}

/** Whether the user has already approved. @param {Hook} hook @param {User | null} who */
export function hasApproved(hook, who) {
  return who !== null && hook.approvals.by.includes(who.name);
}

/**
 * The decisions to offer the user.
 * @param {Hook} hook @param {User | null} who @returns {Decision[]}
 */
export function offeredDecisions(hook, who) {
  if (hook.state !== "waiting" || denialReason(hook, who)) return [];
  return hook.allowed.filter((one) => !(hasApproved(hook, who) && APPROVES.has(one)));
}

/**
 * Whether the hook waits for an answer that this user may give.
 * @param {Hook} hook @param {User | null} who
 */
export function isForUser(hook, who) {
  return hook.state === "waiting" && !denialReason(hook, who) && !hasApproved(hook, who);
}
