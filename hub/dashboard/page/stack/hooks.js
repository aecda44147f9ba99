/** The waiting hooks of a node with the answer form, and its earlier hooks. */

import { href } from "../app/route.js";
import { Answer } from "../inbox/answer.js";
import { keepsVisible } from "../inbox/drafts.js";
import { AT_DEADLINE, approversText } from "../inbox/hook_text.js";
import { cachedHook } from "../inbox/waiting.js";
import { Ago } from "../parts/ago.js";
import { Changes } from "../parts/changes.js";
import { html, useRef } from "../vendor/preact.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("./view_state.js").ViewState} ViewState */
/** @typedef {import("./view_state.js").Subject} Subject */
/** @typedef {import("./types.js").ResourceDetails} ResourceDetails */

/**
 * The waiting hooks of a node, and ended hooks for which the user has a draft.
 * @param {ViewState} viewState @param {Subject} subject @returns {Hook[]}
 */
function useOpen(viewState, subject) {
  const before = useRef(/** @type {Hook[]} */ ([]));
  const open = viewState.watched.hooks.value.filter(
    (hook) => viewState.keyOf(hook) === subject.key,
  );
  const ids = new Set(open.map((item) => item.id));
  const kept = before.current.filter((item) => !ids.has(item.id) && keepsVisible(item.id));
  const shown = [...open, ...kept].map((item) => cachedHook(item.id) ?? item);
  before.current = shown;
  return shown;
}

/** The differences of drift are shown with the drift of the resource. @param {Hook} hook */
function changes({ resource, node }) {
  if (!resource || node === null || Object.keys(resource.changes).length === 0) return null;
  return html`<${Changes} changes=${resource.changes} />`;
}

/** @param {{viewState: ViewState, subject: Subject}} props */
export function OpenHooks({ viewState, subject }) {
  const { watched, past } = viewState;
  const shown = useOpen(viewState, subject);
  const open = past.value || watched.gone.value ? [] : shown;
  return html`${open.map(
    (hook) => html`<section key=${hook.id} class="stack-gate column">
      <h3>${hook.state === "waiting" ? "Waiting for approval" : "No longer waiting"}: ${hook.point}</h3>
      <p class="muted">
        Opened <${Ago} at=${hook.opened_at} />. Approvers: ${approversText(hook)}.
        ${hook.deadline && html`${" "}At the deadline (<${Ago} at=${hook.deadline} />), ${AT_DEADLINE[hook.on_timeout]}.`}
      </p>
      ${changes(hook)}
      <${Answer} project=${watched.project} hook=${hook} />
      <a href=${href(watched.project, "inbox", hook.id)}>Open hook details</a>
    </section>`,
  )}`;
}

/** @param {{viewState: ViewState, seen: ResourceDetails | null}} props */
export function EarlierHooks({ viewState, seen }) {
  const earlier = (seen?.hooks ?? []).filter((hook) => hook.state !== "waiting");
  if (earlier.length === 0) return null;
  return html`<details class="stack-values">
    <summary><h3>Earlier hooks (${earlier.length})</h3></summary>
    <ul class="stack-list">
      ${earlier.map(
        (item) => html`<li key=${item.id}>
          <a href=${href(viewState.watched.project, "inbox", item.id)}>${item.point}</a>${" "}
          ${item.decision ?? item.state}${item.decided_by && ` by ${item.decided_by}`}${" "}
          <${Ago} at=${item.decided_at ?? item.opened_at} />
          ${item.reason && html`<span class="muted breaks">, ${item.reason}</span>`}
        </li>`,
      )}
    </ul>
  </details>`;
}
