/** The hooks that dry-run rules would have opened. */

import { call } from "../api/client.js";
import { href } from "../app/route.js";
import { Ago } from "../parts/ago.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useSignal } from "../vendor/preact.js";
import { pointInWords, subject } from "./hook_text.js";

/** @typedef {import("../api/documents.js").Hook} Hook */

const PAGE = 50;

/** Fetched when the section is opened. @param {{project: string}} props */
export function DryRunHooks({ project }) {
  const hooks = useSignal(/** @type {Hook[] | null} */ (null));
  const next = useSignal("");
  const failure = useSignal(/** @type {unknown} */ (null));
  async function read() {
    try {
      const from = next.value && `&marker=${next.value}`;
      const response = await call("GET", project, `/hooks?dry=true&limit=${PAGE}${from}`);
      hooks.value = [...(hooks.value ?? []), ...response.hooks];
      next.value = response.next ?? "";
      failure.value = null;
    } catch (error) {
      failure.value = error;
    }
  }
  /** @param {{currentTarget: HTMLDetailsElement}} event */
  const opened = (event) => {
    if (event.currentTarget.open && hooks.value === null) read();
  };
  return html`<details class="dry" onToggle=${opened}>
    <summary>Dry-run rules</summary>
    <div class="column">
      <p class="muted">A dry-run rule never blocks a change. These are the hooks it would have opened.</p>
      <${ProblemBox} error=${failure.value} />
      ${hooks.value?.length === 0 && html`<p>No dry-run rule has matched yet.</p>`}
      <ul>
        ${hooks.value?.map(
          (hook) => html`<li key=${hook.id}>
            <a href=${href(project, "inbox", hook.id)}><code class="breaks">${subject(hook)}</code> ${pointInWords(hook.point)}</a>
            <span class="muted"> in ${hook.root_stack_name}, <${Ago} at=${hook.opened_at} /></span>
          </li>`,
        )}
      </ul>
      ${(next.value || failure.value) && html`<div><button onClick=${read}>${failure.value ? "Try again" : "Show more"}</button></div>`}
    </div>
  </details>`;
}
