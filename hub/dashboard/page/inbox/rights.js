/** Which decisions to offer a user. The server enforces the rules. Pure. */

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../api/documents.js").Decision} Decision */
/** @typedef {{name: string, aliases: readonly string[], roles: readonly string[], rights: readonly string[]}} User */

/** Decisions that count as approvals. */
const APPROVES = new Set(["continue", "step", "run", "patch", "repair"]);

/**
 * Why the user may not answer; "" if the user may.
 * @param {Hook} hook @param {User | null} user
 */
export function denialReason(hook, user) {
  if (!user?.rights.includes("answer")) return "You do not have permission to answer hooks.";
  if (hook.exclude === "requester" && hook.requested_by === user.name)
    return "You requested this change, so another approver must answer.";
  if (hook.answer_by.length === 0) return "";
  const identities = [
    ...user.aliases.map((alias) => `user:${alias}`),
    ...user.roles.map((role) => `role:${role}`),
  ];
  return hook.answer_by.some((item) => identities.includes(item))
    ? ""
    : "You are not an approver of this hook.";
}

/** Whether the user has already approved. @param {Hook} hook @param {User | null} user */
export function hasApproved(hook, user) {
  return user !== null && hook.approvals.by.includes(user.name);
}

/**
 * The decisions to offer the user.
 * @param {Hook} hook @param {User | null} user @returns {Decision[]}
 */
export function offeredDecisions(hook, user) {
  if (hook.state !== "waiting" || denialReason(hook, user)) return [];
  const drift = hook.resource?.drift;
  // A value that the object does not have cannot be adopted.
  const adoptable =
    drift?.state === "changed" && drift.differences.every(({ observed }) => observed !== null);
  return hook.allowed.filter(
    (item) => !(hasApproved(hook, user) && APPROVES.has(item)) && (item !== "adopt" || adoptable),
  );
}

/**
 * Whether the hook waits for an answer that this user may give.
 * @param {Hook} hook @param {User | null} user
 */
export function isForUser(hook, user) {
  return hook.state === "waiting" && !denialReason(hook, user) && !hasApproved(hook, user);
}
