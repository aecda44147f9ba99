/** The editor page: the definition of a stack and its plan, for a new or an existing stack. */

import { may, session } from "../api/session.js";
import { guard, href, navigate } from "../app/route.js";
import { Ago } from "../parts/ago.js";
import { StatusBadge } from "../parts/badge.js";
import { Dialog } from "../parts/dialog.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useEffect, useMemo, useRef, useSignal } from "../vendor/preact.js";
import { ApplyButton } from "./apply.js";
import { ConcurrentChange } from "./concurrent_change.js";
import { draftOf, NO_OPTIONS } from "./draft.js";
import { useDraftKeeper } from "./draft_keeper.js";
import { loadStack, pathOf } from "./loading.js";
import { PlanPanel } from "./plan_panel.js";
import { livePreview } from "./preview.js";
import { findStoredDraft, removeStoredDraft } from "./stored_drafts.js";
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
    return html`<${OpenEditor} project=${project} stack=${data} first=${data.value.first} />`;
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
  const handed = useMemo(() => handedDraft.take(), []);
  const first = {
    name: "",
    texts: { template: INITIAL_TEMPLATE, environment: "", files: {} },
    options: NO_OPTIONS,
  };
  if (!may("write"))
    return html`<h1>New stack</h1>
      <p>You do not have permission to create stacks. The author role is required.</p>`;
  return html`<${OpenEditor} project=${project} stack=${stack} first=${first} handed=${handed} />`;
}

/**
 * The editor, with the draft that the window has stored for the stack. stack: null for a new
 * stack. handed: a draft to begin with in place of the stored one.
 * @typedef {import("../vendor/preact.js").Signal<import("./loading.js").Loaded | null>} StackSignal
 * @param {{project: string, stack: StackSignal, first: import("./draft.js").Written,
 *   handed?: import("./draft.js").Written | null}} props
 */
function OpenEditor({ project, stack, first, handed = null }) {
  const loaded = useMemo(() => stack.peek(), []);
  const id = loaded?.id ?? "";
  const restored = useSignal(
    useMemo(() => {
      if (handed || !may("write") || loaded?.within) return null;
      return findStoredDraft(project, id, session.peek()?.name ?? "");
    }, []),
  );
  const found = restored.value;
  // The draft belongs to the version that it was made from; a newer one is another user's change.
  const base = loaded && found?.base ? { ...loaded, ...versionOf(found.base) } : loaded;
  useMemo(() => {
    stack.value = base;
  }, [found]);
  const discard = () => {
    removeStoredDraft(project, id);
    restored.value = null;
  };
  return html`<${Editor} key=${found ? "restored" : "first"} project=${project} stack=${stack}
    first=${base?.first ?? first} newer=${loaded?.version === base?.version ? null : loaded}
    written=${handed ?? found?.written} restored=${found} discard=${discard} />`;
}

/** @param {import("./loading.js").Loaded} stack */
function versionOf({ version, by, at, document, first }) {
  return { version, by, at, document, first };
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
 * stack: null for a new stack. newer: a version after that of the stack, by another user.
 * written: the draft to begin with. restored: the same as it was stored. discard: begins without it.
 * @param {{project: string, stack: StackSignal, first: import("./draft.js").Written,
 *   newer: import("./loading.js").Loaded | null, discard: () => void,
 *   restored: import("./stored_drafts.js").StoredDraft | null,
 *   written: import("./draft.js").Written | undefined}} props
 */
function Editor({ project, stack, first, newer, written, restored, discard }) {
  const current = stack.value;
  const draft = useMemo(() => draftOf(first, written), []);
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
  const keeper = useDraftKeeper({
    project,
    draft,
    stack,
    enabled: () => warnOnLeave.peek() && !readonly,
  });
  useEffect(
    () =>
      warnOnLeave.subscribe((warns) => {
        if (!warns) keeper.remove();
      }),
    [],
  );
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
      ${current && html`<${StatusBadge} action=${current.action} status=${current.status} waiting=${current.waiting} />`}
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
    ${restored && draft.changed.value && html`<${RestoredNotice} restored=${restored} discard=${discard} />`}
    ${current && html`<${ConcurrentChange} newer=${newer} project=${project} stack=${stack} draft=${draft} check=${check} renew=${renew} />`}
    <div class=${`edit ${readonly ? "alone" : ""}`}>
      <${Texts} draft=${draft} check=${check} isNew=${current === null} readonly=${readonly} />
      ${
        !readonly &&
        html`<${PlanPanel} draft=${draft} check=${check}
          underWay=${current?.status === "IN_PROGRESS"} />`
      }
    </div>
    <${UnsavedChanges} when=${() => warnOnLeave.value && !readonly && draft.changed.value} keeper=${keeper} />`;
}

/** @param {{restored: import("./stored_drafts.js").StoredDraft, discard: () => void}} props */
function RestoredNotice({ restored, discard }) {
  return html`<p role="note" class="row">
    <span>Your changes were restored. They were stored <${Ago} at=${restored.at} />, and are not applied yet.
      ${!restored.complete && "Hidden values are not stored: enter them again. An environment with errors is not stored either."}</span>
    <button onClick=${discard}>Discard my changes</button>
  </p>`;
}

/**
 * when: whether there are unsaved changes.
 * @param {{when: () => boolean, keeper: ReturnType<typeof useDraftKeeper>}} props
 */
function UnsavedChanges({ when, keeper }) {
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
      if (lost.current() && !keeper.store()) event.preventDefault();
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
    keeper.remove();
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
