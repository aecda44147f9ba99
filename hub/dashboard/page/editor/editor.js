/** The editor page: the definition of a stack and its plan, for a new or an existing stack. */

import { may } from "../api/session.js";
import { guard, href, navigate } from "../app/route.js";
import { StatusBadge } from "../parts/badge.js";
import { Dialog } from "../parts/dialog.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useEffect, useMemo, useRef, useSignal } from "../vendor/preact.js";
import { ApplyButton } from "./apply.js";
import { ConcurrentChange } from "./concurrent_change.js";
import { draftOf, NO_OPTIONS } from "./draft.js";
import { loadStack, pathOf } from "./loading.js";
import { PlanPanel } from "./plan_panel.js";
import { livePreview } from "./preview.js";
import { Texts } from "./texts.js";

/** The initial template of a new stack. */
const INITIAL_TEMPLATE = `heat_template_version: 2021-04-16

description: Purpose of this stack

parameters:
  greeting:
    type: string
    default: hello

resources:
  first:
    type: OS::Heat::Value
    properties:
      value: {get_param: greeting}
`;

/** @param {{project: string, rest: string[]}} props */
export function EditStack({ project, rest }) {
  const [name = "", id = ""] = rest;
  const data = useSignal(/** @type {import("./loading.js").Loaded | null} */ (null));
  const failure = useSignal(/** @type {unknown} */ (null));
  useEffect(() => {
    loadStack(project, name, id).then(
      (stack) => {
        data.value = stack;
      },
      (error) => {
        failure.value = error;
      },
    );
  }, []);
  if (data.value)
    return html`<${Editor} project=${project} stack=${data} first=${data.value.first} />`;
  return html`<h1>Edit ${name}</h1>
    <${ProblemBox} error=${failure.value} />
    ${
      failure.value
        ? html`<p><a href=${href(project, "stacks")}>All stacks</a></p>`
        : html`<p class="muted" role="status">Loading the stack…</p>`
    }`;
}

/** @param {{project: string}} props */
export function NewStack({ project }) {
  const stack = useSignal(null);
  const first = useMemo(
    () =>
      handedDraft.take() ?? {
        name: "",
        texts: { template: INITIAL_TEMPLATE, environment: "", files: {} },
        options: NO_OPTIONS,
      },
    [],
  );
  if (!may("write"))
    return html`<h1>New stack</h1>
      <p>You do not have permission to create stacks. The author role is required.</p>`;
  return html`<${Editor} project=${project} stack=${stack} first=${first} />`;
}

/** Passes the draft of a deleted stack to the page of a new stack. */
const handedDraft = {
  /** @type {import("./draft.js").Written | null} */
  written: null,
  take() {
    const result = this.written;
    this.written = null;
    return result;
  },
};

/**
 * stack: null for a new stack.
 * @param {{project: string, first: import("./draft.js").Written,
 *   stack: import("../vendor/preact.js").Signal<import("./loading.js").Loaded | null>}} props
 */
function Editor({ project, stack, first }) {
  const current = stack.value;
  const draft = useMemo(() => draftOf(first), []);
  const within = current?.within ?? null;
  const readonly = !may("write") || within !== null;
  const check = useMemo(() => {
    const path = current
      ? `${pathOf(current.name, current.id)}/preview?show_nested=true`
      : "/stacks/preview";
    const method = current ? "PUT" : "POST";
    return livePreview({
      project,
      method,
      path,
      draft,
      isNew: current === null,
      allowed: !readonly,
    });
  }, []);
  useEffect(() => check.stop, []);
  const warnOnLeave = useSignal(true);
  const renew = () => {
    handedDraft.written = {
      ...first,
      name: "",
      texts: draft.texts.value,
      options: { ...draft.options.value, add: [], clear: [], only: "", except: "" },
    };
    warnOnLeave.value = false;
    navigate(href(project, "new"));
  };
  return html`<div class="page-head edit-head">
      <h1>${current ? html`${readonly ? "View" : "Edit"} <span class="breaks">${current.name}</span>` : "New stack"}</h1>
      ${current && html`<${StatusBadge} action=${current.action} status=${current.status} />`}
      <div class="acts">
        ${current && html`<a class="button" href=${href(project, "stack", current.name, current.id)}>Back to stack</a>`}
        ${!readonly && html`<${ApplyButton} project=${project} stack=${stack} draft=${draft} check=${check} leaving=${warnOnLeave} />`}
      </div>
    </div>
    ${
      within &&
      html`<p role="note">This stack is nested in another stack and changes with it:
      <a class="breaks" href=${href(project, "edit", within.name, within.id)}>edit ${within.name}</a>.</p>`
    }
    ${readonly && !within && html`<p role="note">You do not have permission to change this stack. The author role is required.</p>`}
    ${current && html`<${ConcurrentChange} project=${project} stack=${stack} draft=${draft} check=${check} renew=${renew} />`}
    <div class=${`edit ${readonly ? "alone" : ""}`}>
      <${Texts} draft=${draft} check=${check} isNew=${current === null} readonly=${readonly} />
      ${
        !readonly &&
        html`<${PlanPanel} draft=${draft} check=${check}
          underWay=${current?.status === "IN_PROGRESS"} />`
      }
    </div>
    <${UnsavedChanges} when=${() => warnOnLeave.value && !readonly && draft.changed.value} />`;
}

/** when: whether there are unsaved changes. @param {{when: () => boolean}} props */
function UnsavedChanges({ when }) {
  const pending = useSignal(/** @type {(() => void) | null} */ (null));
  const lost = useRef(when);
  lost.current = when;
  useEffect(() => {
    const end = guard((then) => {
      if (!lost.current()) return true;
      pending.value = then;
      return false;
    });
    /** @param {BeforeUnloadEvent} event */
    const closing = (event) => {
      if (lost.current()) event.preventDefault();
    };
    addEventListener("beforeunload", closing);
    return () => {
      end();
      removeEventListener("beforeunload", closing);
    };
  }, []);
  const then = pending.value;
  if (!then) return null;
  const stay = () => {
    pending.value = null;
  };
  const leave = () => {
    stay();
    then();
  };
  return html`<${Dialog} title="Leave without saving?" onClose=${stay}>
    <p>Your changes have not been applied. If you leave, they are lost.</p>
    <div class="acts">
      <button onClick=${stay}>Stay</button>
      <button class="danger" onClick=${leave}>Leave</button>
    </div>
  <//>`;
}
