/** The Snapshots tab: restore and delete snapshots. */

import { call } from "../api/client.js";
import { may } from "../api/session.js";
import { notify } from "../app/notices.js";
import { Ago } from "../parts/ago.js";
import { StatusBadge } from "../parts/badge.js";
import { Confirm } from "../parts/dialog.js";
import { EmptyState } from "../parts/empty_state.js";
import { useFetch } from "../parts/fetch.js";
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
    /** @type {{snapshot: Snapshot, what: "restore" | "delete"} | null} */ (null),
  );
  const deleted = useSignal(0);
  const open = may("write") && watched.gone.value === null;
  const stack = watched.stack.value;
  const traversal = watched.traversal.value;
  const { data, failure } = useFetch(
    async () => /** @type {Snapshot[]} */ ((await watched.get("/snapshots")).snapshots),
    [stack?.stack_status, traversal?.number, traversal?.state, deleted.value],
  );
  const close = () => {
    confirming.value = null;
  };
  /** @param {Snapshot} snapshot */
  async function restore(snapshot) {
    await call("POST", watched.project, `${watched.path}/snapshots/${snapshot.id}/restore`);
    notify(`${watched.name}: restoring the snapshot ${snapshot.name}.`, "good");
    watched.reread();
  }
  /** @param {Snapshot} snapshot */
  async function deleteSnapshot(snapshot) {
    await call("DELETE", watched.project, `${watched.path}/snapshots/${snapshot.id}`);
    notify(`Deleted the snapshot ${snapshot.name}.`, "good");
    deleted.value += 1;
  }
  return html`<${ProblemBox} error=${failure.value} />
    ${
      data.value?.length === 0 &&
      html`<${EmptyState} title="No snapshots yet.">
        <p>
          A snapshot keeps the template of the stack and the data of its resources, so that you can restore
          both. ${open && "Create one with Snapshot at the top of this page."}
        </p>
      <//>`
    }
    ${
      data.value &&
      data.value.length > 0 &&
      html`<section class="scrolls" aria-label="Snapshots"><table class="stack-table">
        <thead><tr><th scope="col">Snapshot</th><th scope="col">Status</th><th scope="col">Created</th>
          <th scope="col">Resources</th>${open && html`<th scope="col">Actions</th>`}</tr></thead>
        <tbody>${data.value.map(
          (item) => html`<tr key=${item.id}>
            <th scope="row" class="breaks">${item.name}</th>
            <td data-label="Status"><${StatusBadge} action="SNAPSHOT" status=${item.status} />
              ${item.status === "FAILED" && html`<br /><span class="muted breaks">${item.status_reason}</span>`}</td>
            <td data-label="Created"><${Ago} at=${item.creation_time} /></td>
            <td data-label="Resources">${Object.keys(item.data.resources).length}</td>
            ${
              open &&
              html`<td data-label="Actions"><span class="row">
                ${item.status === "COMPLETE" && html`<button onClick=${() => (confirming.value = { snapshot: item, what: "restore" })}>Restore…</button>`}
                <button class="danger" onClick=${() => (confirming.value = { snapshot: item, what: "delete" })}>Delete…</button>
              </span></td>`
            }
          </tr>`,
        )}</tbody>
      </table></section>`
    }
    ${
      confirming.value?.what === "restore" &&
      html`<${Confirm} title=${`Restore “${confirming.value.snapshot.name}”?`} word="Restore"
        send=${restore.bind(null, confirming.value.snapshot)} close=${close}>
        Updates the stack to the template of the snapshot and restores the data of its resources.
        Resources added since are deleted.
      <//>`
    }
    ${
      confirming.value?.what === "delete" &&
      html`<${Confirm} title=${`Delete “${confirming.value.snapshot.name}”?`} word="Delete" bad
        send=${deleteSnapshot.bind(null, confirming.value.snapshot)} close=${close}>
        Deletes the snapshot and the resource data it holds. The stack does not change.
      <//>`
    }`;
}
