/** Detects and shows changes that another user makes to the stack during editing. */

import { Problem } from "../api/client.js";
import { listen } from "../api/live.js";
import { notify } from "../app/notices.js";
import { Ago } from "../parts/ago.js";
import { displayText } from "../parts/changes.js";
import { html, useEffect, useSignal } from "../vendor/preact.js";
import { differences } from "./differences.js";
import { loadStack } from "./loading.js";

/** Maximum number of differences shown. */
const MANY = 20;
const SOON = 200;

/**
 * renew: creates a new stack from the draft. newer: a version that is known to be newer.
 * @param {{project: string, draft: import("./draft.js").Draft, renew: () => void,
 *   newer: import("./loading.js").Loaded | null,
 *   stack: import("../vendor/preact.js").Signal<import("./loading.js").Loaded | null>,
 *   check: ReturnType<typeof import("./preview.js").livePreview>}} props
 */
export function ConcurrentChange({ project, draft, stack, check, renew, newer }) {
  const serverVersion = useSignal(newer);
  const deleted = useSignal(stack.value !== null && isDeleted(stack.value));
  useEffect(() => watch({ project, draft, stack, check, serverVersion, deleted }), []);
  if (deleted.value)
    return html`<div class="problem" role="alert">
      <p class="reason">The stack was deleted.</p>
      <p class="row">Your draft is still here. <button onClick=${renew}>Create a new stack from it</button></p>
    </div>`;
  if (!serverVersion.value || !stack.value) return null;
  const other = serverVersion.value;
  const result = differences(comparable(stack.value), comparable(other));
  const take = () => {
    stack.value = other;
    draft.initial.value = other.first;
    draft.texts.value = other.first.texts;
    draft.options.value = other.first.options;
    serverVersion.value = null;
  };
  const keep = () => {
    stack.value = other;
    serverVersion.value = null;
  };
  return html`<section class="edit-concurrent-change" role="alert" aria-label="Stack changed">
    <p><strong class="breaks">${other.by || "Another user"}</strong> changed this stack <${Ago} at=${other.at} />,
      after you opened it. It is now at version ${other.version}; applying your changes overwrites that version.</p>
    ${
      result.length > 0 &&
      html`<ul class="breaks">
        ${result.slice(0, MANY).map(
          (item) => html`<li key=${item.place}><code>${item.place}</code>${": "}
            ${"from" in item && html`<del>${displayText(item.from)}</del>${" → "}`}
            ${"to" in item ? html`<ins>${displayText(item.to)}</ins>` : "removed"}</li>`,
        )}
      </ul>`
    }
    ${result.length > MANY && html`<p>and ${result.length - MANY} more.</p>`}
    <div class="row">
      <button onClick=${keep}>Keep my changes</button>
      <button onClick=${take}>Discard mine and load version ${other.version}</button>
    </div>
  </section>`;
}

/** @param {import("./loading.js").Loaded} stack */
function isDeleted({ action, status }) {
  return action === "DELETE" && status === "COMPLETE";
}

/** @param {import("./loading.js").Loaded} stack */
function comparable({ document }) {
  const { template, environment, files } = document;
  return { ...template, environment, files };
}

/**
 * @param {{project: string, draft: import("./draft.js").Draft,
 *   stack: import("../vendor/preact.js").Signal<import("./loading.js").Loaded | null>,
 *   check: ReturnType<typeof import("./preview.js").livePreview>,
 *   serverVersion: import("../vendor/preact.js").Signal<import("./loading.js").Loaded | null>,
 *   deleted: import("../vendor/preact.js").Signal<boolean>}} what
 */
function watch({ project, draft, stack, check, serverVersion, deleted }) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let ended = false;
  async function fetchStack() {
    timer = undefined;
    const before = stack.value;
    if (!before) return;
    try {
      const now = await loadStack(project, before.name, before.id);
      if (ended) return;
      if (isDeleted(now)) {
        deleted.value = true;
      } else if (now.version === before.version) {
        const { action, status, waiting, reason } = now;
        stack.value = { ...before, action, status, waiting, reason };
      } else if (draft.changed.value) {
        serverVersion.value = now;
      } else {
        stack.value = now;
        draft.initial.value = now.first;
        draft.texts.value = now.first.texts;
        draft.options.value = now.first.options;
        notify(`${now.by || "Another user"} changed the stack. The editor shows the new version.`);
      }
    } catch (error) {
      if (!ended && error instanceof Problem && error.status === 404) deleted.value = true;
    }
  }
  function scheduleCheck() {
    timer ??= setTimeout(fetchStack, SOON);
  }
  const stop = listen({
    event: (event) => {
      const id = stack.value?.id;
      if (event.rootstack !== id) return;
      const ofStack = event.type.startsWith("headgate.stack.") && event.source.endsWith(`/${id}`);
      if (ofStack || event.type.startsWith("headgate.hook.")) scheduleCheck();
      check.later();
    },
    resync: scheduleCheck,
  });
  return () => {
    ended = true;
    clearTimeout(timer);
    stop();
  };
}
