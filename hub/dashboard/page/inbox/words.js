/** Hooks in words. Pure. */

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../api/documents.js").Asked} Asked */

/** @type {Record<string, string>} */
const OF_POINTS = {
  "pre-create": "before it is made",
  "post-create": "after it was made",
  "pre-update": "before it is changed",
  "post-update": "after it was changed",
  "pre-replace": "before it is replaced",
  "post-replace": "after it was replaced",
  "pre-delete": "before it is deleted",
  "post-delete": "after it was deleted",
  "pre-check": "before it is checked",
  "post-check": "after it was checked",
  "pre-suspend": "before it is suspended",
  "post-suspend": "after it was suspended",
  "pre-resume": "before it is resumed",
  "post-resume": "after it was resumed",
  "pre-batch": "before a batch is changed",
  "pre-scale-in": "before members are given up",
};

/** @param {string} point */
export function pointInWords(point) {
  const ofStack = point.match(/^(pre|post)-stack-(.+)$/);
  if (ofStack) return `${ofStack[1] === "pre" ? "before" : "after"} the ${ofStack[2]} of the stack`;
  if (point.startsWith("confirm-")) return `to confirm its ${point.slice("confirm-".length)}`;
  return OF_POINTS[point] ?? `at ${point}`;
}

/** What a hook is of: a resource by its path, or the stack. @param {Hook} hook */
export function subject(hook) {
  return hook.path || `${hook.root_stack_name} as a whole`;
}

/** One that `answer_by` or `assigned` names. @param {string} who */
export function person(who) {
  if (who === "token") return "whoever has the notice's token";
  const [kind, ...name] = who.split(":");
  return kind === "role" ? `anybody with the role ${name.join(":")}` : name.join(":");
}

/** Who may answer. @param {Hook} hook */
export function answerers(hook) {
  const named = [...new Set(hook.answer_by)].map(person);
  const said = named.length === 0 ? "anybody in the project who may answer" : listed(named);
  if (hook.exclude !== "requester") return said;
  return `${said}, but not ${hook.requested_by}, who asked for the change`;
}

/** @param {string[]} names */
function listed(names) {
  if (names.length < 2) return names.join("");
  return `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}

/** What happens when nobody answers. @type {Record<string, string>} */
export const AT_DEADLINE = {
  stop: "the stack stops there",
  continue: "it goes on",
  reject: "it is rejected",
};

/** What somebody did. @type {Record<string, string>} */
const DID = {
  continue: "let it go on",
  reject: "rejected it",
  step: "stepped on",
  "step-into": "stepped into it",
  "step-out": "stepped out of it",
  run: "let it run to the end",
  patch: "let it go on with other properties",
  progress: "gave it more time",
  refused: "tried to answer, and may not",
  "handed-over": "handed it over",
  "expired-stop": "nobody answered in time: the stack stopped there",
  "expired-continue": "nobody answered in time: it went on",
  "expired-reject": "nobody answered in time: it was rejected",
};

/** A decision or a kind of the trail, after a name. @param {string | null | undefined} kind */
export function did(kind) {
  const plain = (kind ?? "").replace(/^dry-/, "");
  const said = DID[plain] ?? plain;
  return kind?.startsWith("dry-") ? `would have: ${said}` : said;
}

/** How a hook ended, in a sentence. @param {Hook} hook */
export function outcome(hook) {
  if (hook.state === "superseded") return "A newer change of the stack ended it.";
  if (hook.state === "expired") {
    const then = AT_DEADLINE[hook.decision ?? hook.on_timeout] ?? hook.decision;
    return `Nobody answered in time: ${then}.`;
  }
  if (hook.dry) return "Held nothing: its rule is being tried out.";
  return `${hook.decided_by} ${did(hook.decision)}.`;
}

/** How the ends of hooks look. @type {Record<string, string>} */
const LOOKS = { reject: "failed", stop: "stopped", superseded: "dropped" };

/** The state whose colour and shape a hook has. @param {Hook} hook */
export function looksOf(hook) {
  if (hook.state === "waiting") return "gate";
  return LOOKS[hook.state === "superseded" ? hook.state : (hook.decision ?? "")] ?? "done";
}

/** How far the notice has come on its way to one. @param {Asked} one */
export function arrival(one) {
  if (one.state === "delivered") return "arrived";
  const why = one.error ?? (one.code ? `answered ${one.code}` : "");
  const tries = one.attempts === 1 ? "1 attempt" : `${one.attempts} attempts`;
  if (one.state === "dead") return `given up after ${tries}${why && `: ${why}`}`;
  return one.attempts === 0 ? "on its way" : `not yet, after ${tries}${why && `: ${why}`}`;
}
