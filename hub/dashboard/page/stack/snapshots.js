/** The Snapshots tab: restore and delete snapshots. */

import { call } from "../api/client.js";
import { may } from "../api/session.js";
import { notify } from "../app/notices.js";
import { Ago } from "../parts/ago.js";
import { StatusBadge } from "../parts/badge.js";
import { Confirm } from "../parts/confirm.js";
import { useFetched } from "../parts/fetched.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useSignal } from "../vendor/preact.js";

/** @typedef {import("./watch.js").WatchedStack} WatchedStack */
/**
 * @typedef {{id: string, name: string, status: string, status_reason: string | null,
 *   creation_time: string, data: {resources: Record<string, unknown>}}} Snapshot
 */

/** @param {{watched: WatchedStack}} props */
export function Snapshots({ watched }) {
  const confirming = useSignal(
    /** @type {{one: Snapshot, what: "restore" | "delete"} | null} */ (null),
  );
  const deleted = useSignal(0);
  const open = may("write") && watched.gone.value === null;
  const stack = watched.stack.value;
  const traversal = watched.traversal.value;
  const { found, wrong } = useFetched(
    async () => /** @type {Snapshot[]} */ ((await watched.get("/snapshots")).snapshots),
    [stack?.stack_status, traversal?.number, traversal?.state, deleted.value],
  );
  const close = () => {
    confirming.value = null;
  };
  /** @param {Snapshot} one */
  async function restore(one) {
    await call("POST", watched.project, `${watched.path}/snapshots/${one.id}/restore`);
    notify(`${watched.name}: restoring the snapshot ${one.name}.`, "good");
    watched.reread();
  }
  /** @param {Snapshot} one */
  async function forget(one) {
    await call("DELETE", watched.project, `${watched.path}/snapshots/${one.id}`);
    notify(`Deleted the snapshot ${one.name}.`, "good");
    deleted.value += 1;
  }
  return html`<${ProblemBox} error=${wrong.value} />
    ${found.value?.length === 0 && html`<p class="muted">No snapshots yet.</p>`}
    ${
      found.value &&
      found.value.length > 0 &&
      html`<section class="scrolls" aria-label="Snapshots"><table class="stack-table">
        <thead><tr><th scope="col">Snapshot</th><th scope="col">Status</th><th scope="col">Created</th>
          <th scope="col">Resources</th>${open && html`<th scope="col">Actions</th>`}</tr></thead>
        <tbody>${found.value.map(
          (one) => html`<tr key=${one.id}>
            <th scope="row" class="breaks">${one.name}</th>
            <td data-label="Status"><${StatusBadge} action="SNAPSHOT" status=${one.status} />
              ${one.status === "FAILED" && html`<br /><span class="muted breaks">${one.status_reason}</span>`}</td>
            <td data-label="Created"><${Ago} at=${one.creation_time} /></td>
            <td data-label="Resources">${Object.keys(one.data.resources).length}</td>
            ${
              open &&
              html`<td data-label="Actions"><span class="row">
                ${one.status === "COMPLETE" && html`<button onClick=${() => (confirming.value = { one, what: "restore" })}>Restore…</button>`}
                <button class="danger" onClick=${() => (confirming.value = { one, what: "delete" })}>Delete…</button>
              </span></td>`
            }
          </tr>`,
        )}</tbody>
      </table></section>`
    }
    ${
      confirming.value?.what === "restore" &&
      html`<${Confirm} title=${`Restore “${confirming.value.one.name}”?`} word="Restore"
        send=${restore.bind(null, confirming.value.one)} close=${close}>
        Updates the stack to the template of the snapshot and restores the data of its resources.
        Resources added since are deleted.
      <//>`
    }
    ${
      confirming.value?.what === "delete" &&
      html`<${Confirm} title=${`Delete “${confirming.value.one.name}”?`} word="Delete" bad
        send=${forget.bind(null, confirming.value.one)} close=${close}>
        Deletes the snapshot and the resource data it holds. The stack does not change.
      <//>`
    }`;
}
