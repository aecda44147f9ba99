/** The hook that waits at a node, with its answer; and those that were before. */

import { href } from "../app/route.js";
import { Answer } from "../inbox/answer.js";
import { holds } from "../inbox/drafts.js";
import { hookOf } from "../inbox/waiting.js";
import { AT_DEADLINE, answerers } from "../inbox/words.js";
import { Ago } from "../parts/ago.js";
import { Changes } from "../parts/changes.js";
import { html, useRef } from "../vendor/preact.js";
import { keyOfHook } from "./state.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("./state.js").Looking} Looking */
/** @typedef {import("./state.js").Subject} Subject */
/** @typedef {import("./shapes.js").Inspected} Inspected */

/**
 * Those that wait at a node; and one that does no more, as long as something was written for it.
 * @param {Looking} looking @param {Subject} subject @returns {Hook[]}
 */
function useOpen({ watched }, subject) {
  const before = useRef(/** @type {Hook[]} */ ([]));
  const open = watched.hooks.value.filter((one) => keyOfHook(one) === subject.key);
  const ids = new Set(open.map((one) => one.id));
  const kept = before.current.filter((one) => !ids.has(one.id) && holds(one.id));
  const shown = [...open, ...kept].map((one) => hookOf(one.id) ?? one);
  before.current = shown;
  return shown;
}

/** @param {Hook} hook */
function changes({ resource }) {
  if (!resource || Object.keys(resource.changes).length === 0) return null;
  return html`<${Changes} changes=${resource.changes} />`;
}

/** @param {{looking: Looking, subject: Subject, seen: Inspected | null}} props */
export function Hooks({ looking, subject, seen }) {
  const { watched, past } = looking;
  const shown = useOpen(looking, subject);
  const open = past.value || watched.gone.value ? [] : shown;
  const earlier = (seen?.hooks ?? []).filter((one) => one.state !== "waiting");
  return html`${open.map(
    (hook) => html`<section key=${hook.id} class="stack-gate column">
      <h3>${hook.state === "waiting" ? "At the gate" : "Was at the gate"}: ${hook.point}</h3>
      <p class="muted">
        Opened <${Ago} at=${hook.opened_at} />, for ${answerers(hook)}; at its deadline,${" "}
        <${Ago} at=${hook.deadline} />, ${AT_DEADLINE[hook.on_timeout]}.
      </p>
      ${changes(hook)}
      <${Answer} project=${watched.project} hook=${hook} />
      <a href=${href(watched.project, "inbox", hook.id)}>Open in the inbox</a>
    </section>`,
  )}
  ${
    earlier.length > 0 &&
    html`<details class="stack-values">
      <summary><h3>Earlier hooks (${earlier.length})</h3></summary>
      <ul class="stack-list">
        ${earlier.map(
          (one) => html`<li key=${one.id}>
            <a href=${href(watched.project, "inbox", one.id)}>${one.point}</a>${" "}
            ${one.decision ?? one.state}${one.decided_by && ` by ${one.decided_by}`}${" "}
            <${Ago} at=${one.decided_at ?? one.opened_at} />
            ${one.reason && html`<span class="muted breaks">, ${one.reason}</span>`}
          </li>`,
        )}
      </ul>
    </details>`
  }`;
}
