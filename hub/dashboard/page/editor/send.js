/** The one button: what is written, with the plan that was seen, becomes what the stack is to be. */

import { call, Problem } from "../api/client.js";
import { useKeys } from "../app/keys.js";
import { notify } from "../app/notices.js";
import { go, href } from "../app/route.js";
import { Dialog } from "../parts/dialog.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useEffect, useRef, useSignal } from "../vendor/preact.js";
import { pathOf } from "./loading.js";

/** The field that the name of a new stack is in. */
export const NAME = "stack-name";

/**
 * @param {{project: string, draft: import("./draft.js").Draft,
 *   stack: import("../vendor/preact.js").Signal<import("./loading.js").Loaded | null>,
 *   check: ReturnType<typeof import("./checking.js").checking>,
 *   leaving: import("../vendor/preact.js").Signal<boolean>}} props
 */
export function Send({ project, stack, draft, check, leaving }) {
  const busy = useSignal(false);
  const wrong = useSignal(/** @type {unknown} */ (null));
  const asking = useSignal(false);
  /** A create that is sent twice, because nobody heard its answer, is made once. */
  const key = useRef({ body: /** @type {unknown} */ (null), key: "" });
  const begun = stack.value;
  const plan = check.isCurrent.value ? check.answer.value.plan : null;
  const ready = plan !== null && !busy.value;

  async function send() {
    const body = check.body.value;
    if (!begun && draft.name.value === "") {
      document.getElementById(NAME)?.focus();
      return notify("Give it a name");
    }
    if (!plan || busy.value) return sayWhyNot(check);
    busy.value = true;
    wrong.value = null;
    try {
      const made = await sent(project, begun, { ...body, plan_digest: plan.digest }, keyFor(body));
      leaving.value = false;
      notify(
        begun ? `${begun.name} is being updated` : `${draft.name.value} is being made`,
        "good",
      );
      go(href(project, "stack", made.name, made.id));
    } catch (error) {
      wrong.value = error;
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
    if (plan && plan.destroys.length > 0) asking.value = true;
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
  useKeys([{ key: "Ctrl-Enter", does: "update, resume or create with what is written" }]);
  useEffect(() => {
    // What was refused is said until something else is written.
    wrong.value = null;
  }, [check.body.value]);

  const close = () => {
    asking.value = false;
  };
  return html`<button class="first" aria-disabled=${ready ? undefined : "true"} onClick=${send} title="Ctrl-Enter">
      ${busy.value ? "Sending…" : labelOf(begun, draft.changed.value)}
    </button>
    ${wrong.value !== null && html`<div class="edit-refused"><${Refused} error=${wrong.value} /></div>`}
    ${
      asking.value &&
      plan &&
      html`<${Dialog} title=${`${labelOf(begun, draft.changed.value)}?`} onClose=${close}>
        <p>The plan deletes or replaces ${plan.destroys.length === 1 ? "a resource" : `${plan.destroys.length} resources`}:</p>
        <ul class="breaks">${plan.destroys.slice(0, 12).map((path) => html`<li key=${path}><code>${path}</code></li>`)}</ul>
        ${plan.destroys.length > 12 && html`<p>and ${plan.destroys.length - 12} more.</p>`}
        <div class="acts">
          <button onClick=${close}>Not now</button>
          <button class="first" onClick=${() => {
            close();
            send();
          }}>${labelOf(begun, draft.changed.value)}</button>
        </div>
      <//>`
    }`;
}

/** @param {import("./loading.js").Loaded | null} begun @param {boolean} changed */
function labelOf(begun, changed) {
  if (!begun) return "Create";
  if (begun.status === "STOPPED") return changed ? "Resume with these changes" : "Resume";
  return "Update";
}

/**
 * @param {string} project @param {import("./loading.js").Loaded | null} begun
 * @param {Record<string, unknown>} body @param {string} key
 */
async function sent(project, begun, body, key) {
  if (begun) {
    await call("PUT", project, pathOf(begun.name, begun.id), body);
    return begun;
  }
  const { stack } = await call("POST", project, "/stacks", body, {
    headers: { "Idempotency-Key": key },
  });
  return { name: String(body.stack_name), id: stack.id };
}

/** @param {ReturnType<typeof import("./checking.js").checking>} check */
function sayWhyNot(check) {
  if (!check.isCurrent.value)
    return notify("The plan is being worked out: press again when it is there");
  if (check.answer.value.findings.length > 0)
    return notify("Something is wrong in it: see the list", "bad");
  return notify("There is no plan yet: see why beside", "bad");
}

/** @param {{error: unknown}} props */
function Refused({ error }) {
  if (!(error instanceof Problem) || error.type !== "PlanChanged")
    return html`<${ProblemBox} error=${error} />`;
  return html`<div class="problem" role="alert">
    <p class="reason">Nothing is sent: since you looked, the plan has become another.</p>
    <p>It is shown anew. Look at it, and press again.</p>
  </div>`;
}
