/** The hook that waits at a node, with its answer; and those that were before. */

import { href } from "../app/route.js";
import { Ago } from "../parts/ago.js";
import { html } from "../vendor/preact.js";
import { keyOfHook } from "./state.js";

/** @typedef {import("./state.js").Looking} Looking */
/** @typedef {import("./state.js").Subject} Subject */
/** @typedef {import("./shapes.js").Inspected} Inspected */

/** @param {{looking: Looking, subject: Subject, seen: Inspected | null}} props */
export function Hooks({ looking, subject, seen }) {
  const { watched, past } = looking;
  const open = past.value
    ? []
    : watched.hooks.value.filter((one) => keyOfHook(one) === subject.key);
  const earlier = (seen?.hooks ?? []).filter((one) => one.state !== "waiting");
  return html`${open.map(
    (hook) => html`<section key=${hook.id} class="stack-gate column">
      <h3>At the gate: ${hook.point}</h3>
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
