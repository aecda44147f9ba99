/** Actions on a whole stack: when they are available and their texts. Pure. */

/** @typedef {import("./types.js").Stack} Stack */

/**
 * @typedef {object} Act
 * @property {string} name
 * @property {string} label label of its button
 * @property {(stack: Stack) => boolean} isAvailable whether it is available now
 * @property {(path: string) => [method: string, path: string, body?: unknown]} request
 * @property {string} done notification after it was accepted
 * @property {string} [confirmation] text of the confirmation; without it there is none
 * @property {boolean} [bad] cannot be undone
 */

/** @param {Stack} stack */
function statusParts({ stack_status }) {
  const at = stack_status.indexOf("_");
  return { action: stack_status.slice(0, at), status: stack_status.slice(at + 1) };
}

/** @param {Stack} stack */
const isBusy = (stack) => statusParts(stack).status === "IN_PROGRESS";
/** @param {Stack} stack */
const isNested = (stack) => stack.root !== null && stack.root !== stack.id;
/** @param {Stack} stack */
const isDeleted = (stack) => stack.stack_status === "DELETE_COMPLETE";
/** @param {Stack} stack */
const isIdle = (stack) => !isBusy(stack) && !isDeleted(stack) && !isNested(stack);

/** Actions that another request than an update continues. */
const WITHOUT_VERSION = ["DELETE", "CHECK", "SUSPEND", "RESUME", "SNAPSHOT"];

/** Whether an update continues an action that has stopped or failed. @param {string} action */
export const isContinuedByUpdate = (action) => !WITHOUT_VERSION.includes(action);

/** @param {string} name @returns {Act["request"]} */
const action = (name) => (path) => ["POST", `${path}/actions`, { [name]: null }];

/** In display order. @type {readonly Act[]} */
const ACTIONS = [
  {
    name: "resume-change",
    label: "Resume change",
    isAvailable: (stack) =>
      isIdle(stack) &&
      ["STOPPED", "FAILED"].includes(statusParts(stack).status) &&
      isContinuedByUpdate(statusParts(stack).action),
    request: (path) => ["PATCH", path, {}],
    done: "Resuming the change.",
  },
  {
    name: "replace-failed",
    label: "Replace failed resources",
    isAvailable: (stack) => stack.stack_status === "CHECK_FAILED" && isIdle(stack),
    request: (path) => ["PATCH", path, {}],
    done: "Updating the stack.",
    confirmation:
      "Updates the stack with the template and parameters that it has. Resources that failed the check are replaced.",
  },
  {
    name: "stop",
    label: "Stop",
    isAvailable: (stack) => isBusy(stack) && !isNested(stack),
    request: action("stop"),
    done: "Stopping. Operations in progress will finish.",
    confirmation:
      "Operations in progress finish, no new operations start, and waiting hooks are superseded. You can continue the action later.",
  },
  {
    name: "cancel",
    label: "Roll back",
    isAvailable: (stack) => stack.stack_status === "UPDATE_IN_PROGRESS" && !isNested(stack),
    request: action("cancel_update"),
    done: "Cancelling the update and rolling back.",
    confirmation: "Cancels the update and returns the stack to the last version it reached.",
  },
  {
    name: "check",
    label: "Check",
    isAvailable: (stack) => isIdle(stack),
    request: action("check"),
    done: "Checking the physical resources of the stack.",
  },
  {
    name: "suspend",
    label: "Suspend",
    isAvailable: (stack) => isIdle(stack) && stack.stack_status !== "SUSPEND_COMPLETE",
    request: action("suspend"),
    done: "Suspending the stack.",
    confirmation:
      "Suspends every resource that supports it, in dependency order. Resume reverses this.",
  },
  {
    name: "resume",
    label: "Resume",
    isAvailable: (stack) =>
      isIdle(stack) &&
      (statusParts(stack).action === "SUSPEND" ||
        ["RESUME_STOPPED", "RESUME_FAILED"].includes(stack.stack_status)),
    request: action("resume"),
    done: "Resuming every suspended resource.",
  },
  {
    name: "snapshot",
    label: "Snapshot",
    isAvailable: (stack) =>
      isIdle(stack) &&
      (statusParts(stack).status === "COMPLETE" || statusParts(stack).action === "SNAPSHOT"),
    request: (path) => ["POST", `${path}/snapshots`, {}],
    done: "Creating a snapshot.",
  },
  {
    name: "delete",
    label: "Delete",
    isAvailable: (stack) =>
      !isDeleted(stack) && !isNested(stack) && stack.stack_status !== "DELETE_IN_PROGRESS",
    request: (path) => ["DELETE", path],
    done: "Deleting the stack.",
    confirmation:
      "Deletes every resource in dependency order, except those whose deletion policy retains them. This cannot be undone.",
    bad: true,
  },
];

/** The actions available for a stack. @param {Stack | null} stack */
export function actionsFor(stack) {
  return stack ? ACTIONS.filter((action) => action.isAvailable(stack)) : [];
}
