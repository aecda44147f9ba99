/** A state as color, icon and text. */

import { html } from "../vendor/preact.js";
import { Icon } from "./icon.js";

/** Stack status to badge state. @type {Record<string, string>} */
const STATUS = {
  COMPLETE: "done",
  FAILED: "failed",
  STOPPED: "stopped",
  IN_PROGRESS: "running",
};

/**
 * state: a node state, or "gate" for a waiting hook. word: text instead of the state's name.
 * @param {{state: string, word?: string}} props
 */
export function Badge({ state, word }) {
  return html`<span class="badge" data-state=${state}>
    <${Icon} name=${state} />${word ?? state}
  </span>`;
}

/**
 * The status of a stack, for example CREATE_STOPPED; "Waiting for approval" if its change waits.
 * waiting: number of waiting hooks.
 * @param {{action: string, status: string, waiting?: number}} props
 */
export function StatusBadge({ action, status, waiting = 0 }) {
  if (waiting > 0 && status === "IN_PROGRESS") {
    return html`<span title=${`${action}_${status}`}><${Badge} state="gate" word="Waiting for approval" /></span>`;
  }
  return html`<${Badge} state=${STATUS[status] ?? "waiting"} word=${`${action}_${status}`} />`;
}
