/** What somebody else does to the stack while it is edited: said, with what changed. */

import { Problem } from "../api/client.js";
import { listen } from "../api/live.js";
import { notify } from "../app/notices.js";
import { Ago } from "../parts/ago.js";
import { shown } from "../parts/changes.js";
import { html, useEffect, useSignal } from "../vendor/preact.js";
import { differences } from "./differences.js";
import { loaded } from "./loading.js";

/** So many differences are shown. */
const MANY = 20;
const SOON = 200;

/**
 * renew: make a new stack of what is written.
 * @param {{project: string, draft: import("./draft.js").Draft, renew: () => void,
 *   stack: import("../vendor/preact.js").Signal<import("./loading.js").Loaded | null>,
 *   check: ReturnType<typeof import("./checking.js").checking>}} props
 */
export function Meanwhile({ project, draft, stack, check, renew }) {
  const theirs = useSignal(/** @type {import("./loading.js").Loaded | null} */ (null));
  const gone = useSignal(stack.value !== null && isGone(stack.value));
  useEffect(() => watch({ project, draft, stack, check, theirs, gone }), []);
  if (gone.value)
    return html`<div class="problem" role="alert">
      <p class="reason">The stack is deleted.</p>
      <p class="row">What you wrote is still here. <button onClick=${renew}>Make a new stack of it</button></p>
    </div>`;
  if (!theirs.value || !stack.value) return null;
  const other = theirs.value;
  const found = differences(known(stack.value), known(other));
  const take = () => {
    stack.value = other;
    draft.begun.value = other.first;
    draft.texts.value = other.first.texts;
    draft.options.value = other.first.options;
    theirs.value = null;
  };
  const keep = () => {
    stack.value = other;
    theirs.value = null;
  };
  return html`<section class="edit-meanwhile" role="alert" aria-label="Changed meanwhile">
    <p><strong class="breaks">${other.by || "Somebody"}</strong> changed this stack <${Ago} at=${other.at} />,
      after you began: it has version ${other.version} now. What you send takes the place of that.</p>
    ${
      found.length > 0 &&
      html`<ul class="breaks">
        ${found.slice(0, MANY).map(
          (one) => html`<li key=${one.place}><code>${one.place}</code>${": "}
            ${"from" in one && html`<del>${shown(one.from)}</del>${" → "}`}
            ${"to" in one ? html`<ins>${shown(one.to)}</ins>` : "gone"}</li>`,
        )}
      </ul>`
    }
    ${found.length > MANY && html`<p>and ${found.length - MANY} more.</p>`}
    <div class="row">
      <button onClick=${keep}>Go on with mine</button>
      <button onClick=${take}>Take theirs, and lose mine</button>
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
 *   check: ReturnType<typeof import("./checking.js").checking>,
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
        draft.begun.value = now.first;
        draft.texts.value = now.first.texts;
        draft.options.value = now.first.options;
        notify(`${now.by || "Somebody"} changed the stack: this is how it is now`);
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
