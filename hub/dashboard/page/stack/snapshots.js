/** Snapshots of a stack: gone back to, and deleted. */

import { call } from "../api/client.js";
import { may } from "../api/session.js";
import { notify } from "../app/notices.js";
import { Ago } from "../parts/ago.js";
import { StatusBadge } from "../parts/badge.js";
import { Confirm } from "../parts/confirm.js";
import { ProblemBox } from "../parts/problem.js";
import { useRead } from "../parts/read.js";
import { html, useSignal } from "../vendor/preact.js";

/** @typedef {import("./watch.js").WatchedStack} WatchedStack */
/**
 * @typedef {{id: string, name: string, status: string, status_reason: string | null,
 *   creation_time: string, data: {resources: Record<string, unknown>}}} Snapshot
 */

/** @param {{watched: WatchedStack}} props */
export function Snapshots({ watched }) {
  const asked = useSignal(/** @type {{one: Snapshot, what: "restore" | "delete"} | null} */ (null));
  const deleted = useSignal(0);
  const open = may("write") && watched.gone.value === null;
  const stack = watched.stack.value;
  const walk = watched.traversal.value;
  const { found, wrong } = useRead(
    async () => /** @type {Snapshot[]} */ ((await watched.get("/snapshots")).snapshots),
    [stack?.stack_status, walk?.number, walk?.state, deleted.value],
  );
  const close = () => {
    asked.value = null;
  };
  /** @param {Snapshot} one */
  async function restore(one) {
    await call("POST", watched.project, `${watched.path}/snapshots/${one.id}/restore`);
    notify(`${watched.name}: It goes back to ${one.name}.`, "good");
    watched.reread();
  }
  /** @param {Snapshot} one */
  async function forget(one) {
    await call("DELETE", watched.project, `${watched.path}/snapshots/${one.id}`);
    notify(`${watched.name}: ${one.name} is deleted.`, "good");
    deleted.value += 1;
  }
  return html`<${ProblemBox} error=${wrong.value} />
    ${found.value?.length === 0 && html`<p class="muted">No snapshot of it was made.</p>`}
    ${
      found.value &&
      found.value.length > 0 &&
      html`<section class="scrolls" aria-label="Snapshots"><table class="stack-table">
        <thead><tr><th scope="col">Snapshot</th><th scope="col">State</th><th scope="col">Made</th>
          <th scope="col">Resources</th>${open && html`<th scope="col">Do</th>`}</tr></thead>
        <tbody>${found.value.map(
          (one) => html`<tr key=${one.id}>
            <th scope="row" class="breaks">${one.name}</th>
            <td data-label="State"><${StatusBadge} action="SNAPSHOT" status=${one.status} />
              ${one.status === "FAILED" && html`<br /><span class="muted breaks">${one.status_reason}</span>`}</td>
            <td data-label="Made"><${Ago} at=${one.creation_time} /></td>
            <td data-label="Resources">${Object.keys(one.data.resources).length}</td>
            ${
              open &&
              html`<td data-label="Do"><span class="row">
                ${one.status === "COMPLETE" && html`<button onClick=${() => (asked.value = { one, what: "restore" })}>Go back to it…</button>`}
                <button class="danger" onClick=${() => (asked.value = { one, what: "delete" })}>Delete it…</button>
              </span></td>`
            }
          </tr>`,
        )}</tbody>
      </table></section>`
    }
    ${
      asked.value?.what === "restore" &&
      html`<${Confirm} title=${`Go back to “${asked.value.one.name}”?`} word="Go back"
        send=${restore.bind(null, asked.value.one)} close=${close}>
        The stack is updated to the template of then, and its resources get back what they kept.
        What was added since is deleted.
      <//>`
    }
    ${
      asked.value?.what === "delete" &&
      html`<${Confirm} title=${`Delete “${asked.value.one.name}”?`} word="Delete" bad
        send=${forget.bind(null, asked.value.one)} close=${close}>
        What its resources kept is thrown away. The stack stays as it is.
      <//>`
    }`;
}
