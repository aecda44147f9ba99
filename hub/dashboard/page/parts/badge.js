/** A state: its colour, its shape and its word. */

import { html } from "../vendor/preact.js";
import { Icon } from "./icon.js";

/** What is shown of a stack's status. @type {Record<string, string>} */
const STATUS = {
  COMPLETE: "done",
  FAILED: "failed",
  STOPPED: "stopped",
  IN_PROGRESS: "running",
};

/**
 * state: one of a node, or "gate" where a hook waits. word: another one than the state's own.
 * @param {{state: string, word?: string}} props
 */
export function Badge({ state, word }) {
  return html`<span class="badge" data-state=${state}>
    <${Icon} name=${state} />${word ?? state}
  </span>`;
}

/** Of a stack: CREATE_STOPPED. @param {{action: string, status: string}} props */
export function StatusBadge({ action, status }) {
  return html`<${Badge} state=${STATUS[status] ?? "waiting"} word=${`${action}_${status}`} />`;
}
