/** Actions on a whole stack: when they are available and their texts. Pure. */

/** @typedef {import("./types.js").Stack} Stack */

/**
 * @typedef {object} Act
 * @property {string} name
 * @property {string} word label of its button
 * @property {(stack: Stack) => boolean} fits whether it is available now
 * @property {(path: string) => [method: string, path: string, body?: unknown]} sends
 * @property {string} done notification after it was accepted
 * @property {string} [asks] text of the confirmation; without it there is none
 * @property {boolean} [bad] cannot be undone
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

/** In display order. @type {readonly Act[]} */
export const ACTIONS = [
  {
    name: "go-on",
    word: "Resume change",
    fits: (stack) =>
      rests(stack) &&
      ["STOPPED", "FAILED"].includes(parts(stack).status) &&
      parts(stack).action !== "DELETE",
    sends: (path) => ["PATCH", path, {}],
    done: "Resuming the change.",
  },
  {
    name: "stop",
    word: "Stop",
    fits: (stack) => busy(stack) && !inside(stack),
    sends: action("stop"),
    done: "Stopping. Operations in progress will finish.",
    asks: "Operations in progress finish, no new operations start, and waiting hooks are superseded. You can resume the change later with an update.",
  },
  {
    name: "cancel",
    word: "Roll back",
    fits: (stack) => stack.stack_status === "UPDATE_IN_PROGRESS" && !inside(stack),
    sends: action("cancel_update"),
    done: "Cancelling the update and rolling back.",
    asks: "Cancels the update and returns the stack to the last version it reached.",
  },
  {
    name: "check",
    word: "Check",
    fits: (stack) => rests(stack),
    sends: action("check"),
    done: "Checking the physical resources of the stack.",
  },
  {
    name: "suspend",
    word: "Suspend",
    fits: (stack) => rests(stack) && stack.stack_status !== "SUSPEND_COMPLETE",
    sends: action("suspend"),
    done: "Suspending the stack.",
    asks: "Suspends every resource that supports it, in dependency order. Resume reverses this.",
  },
  {
    name: "resume",
    word: "Resume",
    fits: (stack) => rests(stack) && parts(stack).action === "SUSPEND",
    sends: action("resume"),
    done: "Resuming every suspended resource.",
  },
  {
    name: "snapshot",
    word: "Snapshot",
    fits: (stack) => rests(stack) && parts(stack).status === "COMPLETE",
    sends: (path) => ["POST", `${path}/snapshots`, {}],
    done: "Creating a snapshot.",
  },
  {
    name: "delete",
    word: "Delete",
    fits: (stack) => !gone(stack) && !inside(stack) && stack.stack_status !== "DELETE_IN_PROGRESS",
    sends: (path) => ["DELETE", path],
    done: "Deleting the stack.",
    asks: "Deletes every resource in dependency order, except those whose deletion policy retains them. This cannot be undone.",
    bad: true,
  },
];

/** The actions available for a stack. @param {Stack | null} stack */
export function actionsFor(stack) {
  return stack ? ACTIONS.filter((one) => one.fits(stack)) : [];
}
