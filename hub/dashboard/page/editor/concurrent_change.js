/** Detects and shows changes that another user makes to the stack during editing. */

import { Problem } from "../api/client.js";
import { listen } from "../api/live.js";
import { notify } from "../app/notices.js";
import { Ago } from "../parts/ago.js";
import { shown } from "../parts/changes.js";
import { html, useEffect, useSignal } from "../vendor/preact.js";
import { differences } from "./differences.js";
import { loaded } from "./loading.js";

/** Maximum number of differences shown. */
const MANY = 20;
const SOON = 200;

/**
 * renew: creates a new stack from the draft.
 * @param {{project: string, draft: import("./draft.js").Draft, renew: () => void,
 *   stack: import("../vendor/preact.js").Signal<import("./loading.js").Loaded | null>,
 *   check: ReturnType<typeof import("./preview.js").livePreview>}} props
 */
export function ConcurrentChange({ project, draft, stack, check, renew }) {
  const theirs = useSignal(/** @type {import("./loading.js").Loaded | null} */ (null));
  const gone = useSignal(stack.value !== null && isGone(stack.value));
  useEffect(() => watch({ project, draft, stack, check, theirs, gone }), []);
  if (gone.value)
    return html`<div class="problem" role="alert">
      <p class="reason">The stack was deleted.</p>
      <p class="row">Your draft is still here. <button onClick=${renew}>Create a new stack from it</button></p>
    </div>`;
  if (!theirs.value || !stack.value) return null;
  const other = theirs.value;
  const found = differences(known(stack.value), known(other));
  const take = () => {
    stack.value = other;
    draft.initial.value = other.first;
    draft.texts.value = other.first.texts;
    draft.options.value = other.first.options;
    theirs.value = null;
  };
  const keep = () => {
    stack.value = other;
    theirs.value = null;
  };
  return html`<section class="edit-meanwhile" role="alert" aria-label="Stack changed">
    <p><strong class="breaks">${other.by || "Another user"}</strong> changed this stack <${Ago} at=${other.at} />,
      after you opened it. It is now at version ${other.version}; applying your changes overwrites that version.</p>
    ${
      found.length > 0 &&
      html`<ul class="breaks">
        ${found.slice(0, MANY).map(
          (one) => html`<li key=${one.place}><code>${one.place}</code>${": "}
            ${"from" in one && html`<del>${shown(one.from)}</del>${" → "}`}
            ${"to" in one ? html`<ins>${shown(one.to)}</ins>` : "removed"}</li>`,
        )}
      </ul>`
    }
    ${found.length > MANY && html`<p>and ${found.length - MANY} more.</p>`}
    <div class="row">
      <button onClick=${keep}>Keep my changes</button>
      <button onClick=${take}>Discard mine and load version ${other.version}</button>
    </div>
  </section>`;
}

/** @param {import("./loading.js").Loaded} one */
function isGone({ action, status }) {
  return action === "DELETE" && status === "COMPLETE";
}

/** @param {import("./loading.js").Loaded} one */
function known({ document }) {
  const { template, environment, files } = document;
  return { ...template, environment, files };
}

/**
 * @param {{project: string, draft: import("./draft.js").Draft,
 *   stack: import("../vendor/preact.js").Signal<import("./loading.js").Loaded | null>,
 *   check: ReturnType<typeof import("./preview.js").livePreview>,
 *   theirs: import("../vendor/preact.js").Signal<import("./loading.js").Loaded | null>,
 *   gone: import("../vendor/preact.js").Signal<boolean>}} what
 */
function watch({ project, draft, stack, check, theirs, gone }) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let ended = false;
  async function look() {
    timer = undefined;
    const before = stack.value;
    if (!before) return;
    try {
      const now = await loaded(project, before.name, before.id);
      if (ended) return;
      if (isGone(now)) {
        gone.value = true;
      } else if (now.version === before.version) {
        stack.value = { ...before, action: now.action, status: now.status, reason: now.reason };
      } else if (draft.changed.value) {
        theirs.value = now;
      } else {
        stack.value = now;
        draft.initial.value = now.first;
        draft.texts.value = now.first.texts;
        draft.options.value = now.first.options;
        notify(`${now.by || "Another user"} changed the stack. The editor shows the new version.`);
      }
    } catch (error) {
      if (!ended && error instanceof Problem && error.status === 404) gone.value = true;
    }
  }
  function soon() {
    timer ??= setTimeout(look, SOON);
  }
  const stop = listen({
    event: (event) => {
      const id = stack.value?.id;
      if (event.rootstack !== id) return;
      if (event.type.startsWith("headgate.stack.") && event.source.endsWith(`/${id}`)) soon();
      check.later();
    },
    resync: soon,
  });
  return () => {
    ended = true;
    clearTimeout(timer);
    stop();
  };
}
