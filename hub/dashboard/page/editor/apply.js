/** The button that applies the draft with exactly the plan shown. */

import { call, Problem } from "../api/client.js";
import { useKeys } from "../app/keys.js";
import { notify } from "../app/notices.js";
import { href, navigate } from "../app/route.js";
import { Dialog } from "../parts/dialog.js";
import { ProblemBox } from "../parts/problem.js";
import { isContinuedByUpdate } from "../stack/actions.js";
import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";
import { pathOf } from "./loading.js";

/** ID of the stack name field. */
export const NAME = "stack-name";

/**
 * @param {{project: string, draft: import("./draft.js").Draft,
 *   stack: import("../vendor/preact.js").Signal<import("./loading.js").Loaded | null>,
 *   check: ReturnType<typeof import("./preview.js").livePreview>,
 *   leaving: import("../vendor/preact.js").Signal<boolean>}} props
 */
export function ApplyButton({ project, stack, draft, check, leaving }) {
  const busy = useSignal(false);
  const failure = useSignal(/** @type {unknown} */ (null));
  const confirming = useSignal(false);
  /** Idempotency key: a create that is sent again after a lost response takes effect once. */
  const key = useRef({ body: /** @type {unknown} */ (null), key: "" });
  const current = stack.value;
  const plan = check.isCurrent.value ? check.answer.value.plan : null;
  const ready = plan !== null && !busy.value;

  async function send() {
    const body = check.body.value;
    if (!current && draft.name.value === "") {
      document.getElementById(NAME)?.focus();
      return notify("Enter a stack name.");
    }
    if (!plan || busy.value) return notifyWhyNot(check);
    busy.value = true;
    failure.value = null;
    try {
      const saved = await sendDraft(
        project,
        current,
        { ...body, plan_digest: plan.digest },
        keyFor(body),
      );
      leaving.value = false;
      notify(current ? `Updating ${current.name}.` : `Creating ${draft.name.value}.`, "good");
      navigate(href(project, "stack", saved.name, saved.id));
    } catch (error) {
      failure.value = error;
      if (error instanceof Problem && error.type === "PlanChanged") check.again();
    } finally {
      busy.value = false;
    }
  }

  /** @param {unknown} body */
  function keyFor(body) {
    if (key.current.body !== body) key.current = { body, key: crypto.randomUUID() };
    return key.current.key;
  }

  const pressed = useRef(() => {});
  pressed.current = () => {
    if (document.querySelector("dialog[open]")) return;
    if (plan && plan.destroys.length > 0) confirming.value = true;
    else send();
  };
  useEffect(() => {
    /** @param {KeyboardEvent} event */
    const listen = (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      pressed.current();
    };
    addEventListener("keydown", listen, true);
    return () => removeEventListener("keydown", listen, true);
  }, []);
  useKeys([{ key: "Ctrl-Enter", description: "apply the plan (create, update or resume)" }]);
  useEffect(() => {
    // The error disappears when the draft changes.
    failure.value = null;
  }, [check.body.value]);

  const close = () => {
    confirming.value = false;
  };
  return html`<button class="first" aria-disabled=${ready ? undefined : "true"} onClick=${send} title="Ctrl-Enter">
      ${busy.value ? "Sending…" : labelOf(current, draft.changed.value)}
    </button>
    ${failure.value !== null && html`<div class="edit-refused"><${PlanChangedNotice} error=${failure.value} /></div>`}
    ${
      confirming.value &&
      plan &&
      html`<${Dialog} title=${`${labelOf(current, draft.changed.value)}?`} onClose=${close}>
        <p>The plan deletes or replaces ${plan.destroys.length === 1 ? "a resource" : `${plan.destroys.length} resources`}:</p>
        <ul class="breaks">${plan.destroys.slice(0, 12).map((path) => html`<li key=${path}><code>${path}</code></li>`)}</ul>
        ${plan.destroys.length > 12 && html`<p>and ${plan.destroys.length - 12} more.</p>`}
        <div class="acts">
          <button onClick=${close}>Cancel</button>
          <button class="first" onClick=${() => {
            close();
            send();
          }}>${labelOf(current, draft.changed.value)}</button>
        </div>
      <//>`
    }`;
}

/** @param {import("./loading.js").Loaded | null} current @param {boolean} changed */
function labelOf(current, changed) {
  if (!current) return "Create";
  if (current.status === "STOPPED" && isContinuedByUpdate(current.action))
    return changed ? "Resume with changes" : "Resume";
  return "Update";
}

/**
 * @param {string} project @param {import("./loading.js").Loaded | null} current
 * @param {Record<string, unknown>} body @param {string} key
 */
async function sendDraft(project, current, body, key) {
  if (current) {
    await call("PUT", project, pathOf(current.name, current.id), body);
    return current;
  }
  const { stack } = await call("POST", project, "/stacks", body, {
    headers: { "Idempotency-Key": key },
  });
  return { name: String(body.stack_name), id: stack.id };
}

/** @param {ReturnType<typeof import("./preview.js").livePreview>} check */
function notifyWhyNot(check) {
  if (!check.isCurrent.value)
    return notify("The plan is still being computed. Try again in a moment.");
  if (check.answer.value.findings.length > 0) return notify("Fix the listed errors first.", "bad");
  return notify("No plan yet. The plan panel shows the reason.", "bad");
}

/** @param {{error: unknown}} props */
function PlanChangedNotice({ error }) {
  if (!(error instanceof Problem) || error.type !== "PlanChanged")
    return html`<${ProblemBox} error=${error} />`;
  return html`<div class="problem" role="alert">
    <p class="reason">Not applied: the plan changed since you reviewed it.</p>
    <p>The new plan is shown. Review it, then try again.</p>
  </div>`;
}
