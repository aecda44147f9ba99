/** What can be done to a whole stack: when, by whom, and what is said before it. Pure. */

/** @typedef {import("./shapes.js").Stack} Stack */

/**
 * @typedef {object} Act
 * @property {string} name
 * @property {string} word on its button
 * @property {(stack: Stack) => boolean} fits whether it makes sense now
 * @property {(path: string) => [method: string, path: string, body?: unknown]} sends
 * @property {string} done what is said when it was accepted
 * @property {string} [asks] what is said before; without it, nothing is asked
 * @property {boolean} [bad] what it takes away does not come back
 */

/** @param {Stack} stack */
function parts({ stack_status }) {
  const at = stack_status.indexOf("_");
  return { action: stack_status.slice(0, at), status: stack_status.slice(at + 1) };
}

/** @param {Stack} stack */
const busy = (stack) => parts(stack).status === "IN_PROGRESS";
/** @param {Stack} stack */
const inside = (stack) => stack.root !== null && stack.root !== stack.id;
/** @param {Stack} stack */
const gone = (stack) => stack.stack_status === "DELETE_COMPLETE";
/** @param {Stack} stack */
const rests = (stack) => !busy(stack) && !gone(stack) && !inside(stack);

/** @param {string} name @returns {Act["sends"]} */
const action = (name) => (path) => ["POST", `${path}/actions`, { [name]: null }];

/** In the order in which they are shown. @type {readonly Act[]} */
export const ACTS = [
  {
    name: "go-on",
    word: "Go on",
    fits: (stack) =>
      rests(stack) &&
      ["STOPPED", "FAILED"].includes(parts(stack).status) &&
      parts(stack).action !== "DELETE",
    sends: (path) => ["PATCH", path, {}],
    done: "It goes on.",
  },
  {
    name: "stop",
    word: "Stop",
    fits: (stack) => busy(stack) && !inside(stack),
    sends: action("stop"),
    done: "It stops: what has begun is finished.",
    asks: "What has begun is finished, nothing else begins, and hooks that wait are answered no more. An update goes on from there.",
  },
  {
    name: "cancel",
    word: "Cancel, roll back",
    fits: (stack) => stack.stack_status === "UPDATE_IN_PROGRESS" && !inside(stack),
    sends: action("cancel_update"),
    done: "The update is cancelled, and rolled back.",
    asks: "The update ends, and the stack goes back to the version that was reached last.",
  },
  {
    name: "check",
    word: "Check",
    fits: (stack) => rests(stack),
    sends: action("check"),
    done: "It is checked against what is really there.",
  },
  {
    name: "suspend",
    word: "Suspend",
    fits: (stack) => rests(stack) && stack.stack_status !== "SUSPEND_COMPLETE",
    sends: action("suspend"),
    done: "It is suspended.",
    asks: "Every resource that can be suspended is, in order. Resuming wakes them up.",
  },
  {
    name: "resume",
    word: "Resume",
    fits: (stack) => rests(stack) && parts(stack).action === "SUSPEND",
    sends: action("resume"),
    done: "It is resumed.",
  },
  {
    name: "snapshot",
    word: "Snapshot",
    fits: (stack) => rests(stack) && parts(stack).status === "COMPLETE",
    sends: (path) => ["POST", `${path}/snapshots`, {}],
    done: "A snapshot is made.",
  },
  {
    name: "delete",
    word: "Delete",
    fits: (stack) => !gone(stack) && !inside(stack) && stack.stack_status !== "DELETE_IN_PROGRESS",
    sends: (path) => ["DELETE", path],
    done: "It is deleted, in order.",
    asks: "Every resource is deleted, in order, but for those whose deletion policy keeps them. This cannot be taken back.",
    bad: true,
  },
];

/** Those that fit a stack as it is. @param {Stack | null} stack */
export function actsFor(stack) {
  return stack ? ACTS.filter((one) => one.fits(stack)) : [];
}
