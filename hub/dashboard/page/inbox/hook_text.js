/** Hooks as text. Pure. */

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../api/documents.js").HookNotification} HookNotification */

/** A hook point in words: "before create", "after stack update". @param {string} point */
export function pointInWords(point) {
  if (point === "drift") return "to repair drift";
  if (point.startsWith("confirm-")) return `to confirm ${point.slice("confirm-".length)}`;
  const [, side, rest = ""] = point.match(/^(pre|post)-(.+)$/) ?? [];
  if (!side) return `at ${point}`;
  const operation = rest === "scale-in" ? rest : rest.replaceAll("-", " ");
  return `${side === "pre" ? "before" : "after"} ${operation}`;
}

/** The subject of a hook: the path of a resource, or the stack. @param {Hook} hook */
export function subject(hook) {
  return hook.path || `${hook.root_stack_name} as a whole`;
}

/** An entry of `answer_by` or `assigned` as text. @param {string} who */
export function principalText(who) {
  if (who === "token") return "anyone with the hook token";
  const [kind, ...name] = who.split(":");
  if (kind === "subscription") return `the subscription ${name.join(":")}`;
  return kind === "role" ? `anyone with the role ${name.join(":")}` : name.join(":");
}

/** The approvers as text. @param {Hook} hook */
export function approversText(hook) {
  const named = [...new Set(hook.answer_by)].map(principalText);
  const text = named.length === 0 ? "anyone in the project" : joinWithOr(named);
  if (hook.exclude !== "requester") return text;
  return `${text}, except ${hook.requested_by} (the requester)`;
}

/** @param {string[]} names */
function joinWithOr(names) {
  if (names.length < 2) return names.join("");
  return `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}

/** What happens at the deadline. @type {Record<string, string>} */
export const AT_DEADLINE = {
  stop: "the stack stops",
  continue: "the change continues",
  reject: "the operation is rejected",
};

/** Kind of decision and its text; follows the user's name. @type {Record<string, string>} */
const DECISION_TEXTS = {
  continue: "approved",
  reject: "rejected",
  step: "approved with step",
  "step-into": "approved with step into",
  "step-out": "approved with step out",
  run: "approved with run to end",
  patch: "approved with changed properties",
  progress: "extended the deadline",
  adopt: "adopted the observed values",
  repair: "approved the repair",
  ignore: "ignored the drift for a time",
  refused: "tried to answer without permission",
  "handed-over": "handed over",
  "expired-stop": "Timed out; the stack stopped",
  "expired-continue": "Timed out; the change continued",
  "expired-reject": "Timed out; the operation was rejected",
};

/**
 * A decision or a kind of audit entry as text; follows the user's name.
 * @param {string | null | undefined} kind
 */
export function decisionText(kind) {
  const plain = (kind ?? "").replace(/^dry-/, "");
  const text = DECISION_TEXTS[plain] ?? plain;
  return kind?.startsWith("dry-") ? `${text} (dry run)` : text;
}

/** The outcome of a hook as a sentence. @param {Hook} hook */
export function outcomeText(hook) {
  if (hook.state === "superseded" && hook.point === "drift")
    return "The drift changed or ended, or a change of the stack concerns the resource.";
  if (hook.state === "superseded" && hook.reason) return `Asked again: ${hook.reason}.`;
  if (hook.state === "superseded") return "A newer change of the stack superseded this hook.";
  if (hook.state === "expired") {
    return `${decisionText(`expired-${hook.decision ?? hook.on_timeout}`)}.`;
  }
  if (hook.dry) return "Did not block the change: its rule is a dry run.";
  return `${hook.decided_by} ${decisionText(hook.decision)}.`;
}

/** Outcome to badge state. @type {Record<string, string>} */
const BADGE_STATES = { reject: "failed", stop: "stopped", superseded: "dropped" };

/** The badge state of a hook. @param {Hook} hook */
export function badgeStateOf(hook) {
  if (hook.state === "waiting") return "gate";
  return BADGE_STATES[hook.state === "superseded" ? hook.state : (hook.decision ?? "")] ?? "done";
}

/** The state of a hook notification as text. @param {HookNotification} delivery */
export function deliveryText(delivery) {
  if (delivery.state === "delivered") return "delivered";
  const why = delivery.error ?? (delivery.code ? `response ${delivery.code}` : "");
  const tries = delivery.attempts === 1 ? "1 attempt" : `${delivery.attempts} attempts`;
  if (delivery.state === "dead") return `dead after ${tries}${why && `: ${why}`}`;
  return delivery.attempts === 0 ? "pending" : `not delivered after ${tries}${why && `: ${why}`}`;
}
