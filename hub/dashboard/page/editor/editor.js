/** The texts of a stack, with what would come of them beside: edit and continue, or a new stack. */

import { may } from "../api/session.js";
import { go, href } from "../app/route.js";
import { StatusBadge } from "../parts/badge.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useEffect, useMemo, useSignal } from "../vendor/preact.js";
import { checking } from "./checking.js";
import { draftOf, NO_OPTIONS } from "./draft.js";
import { Leaving } from "./leaving.js";
import { loaded, pathOf } from "./loading.js";
import { Meanwhile } from "./meanwhile.js";
import { PlanBeside } from "./planned.js";
import { Send } from "./send.js";
import { Texts } from "./texts.js";

/** What a new stack begins with. */
const BEGINNING = `heat_template_version: 2021-04-16

description: What this stack is for

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
  const found = useSignal(/** @type {import("./loading.js").Loaded | null} */ (null));
  const wrong = useSignal(/** @type {unknown} */ (null));
  useEffect(() => {
    loaded(project, name, id).then(
      (stack) => {
        found.value = stack;
      },
      (error) => {
        wrong.value = error;
      },
    );
  }, []);
  if (found.value)
    return html`<${Editor} project=${project} stack=${found} first=${found.value.first} />`;
  return html`<h1>Edit ${name}</h1>
    <${ProblemBox} error=${wrong.value} />
    ${
      wrong.value
        ? html`<p><a href=${href(project, "stacks")}>Go to the stacks</a></p>`
        : html`<p class="muted" role="status">Reading the stack…</p>`
    }`;
}

/** @param {{project: string}} props */
export function NewStack({ project }) {
  const stack = useSignal(null);
  const first = useMemo(
    () =>
      handed.taken() ?? {
        name: "",
        texts: { template: BEGINNING, environment: "", files: {} },
        options: NO_OPTIONS,
      },
    [],
  );
  if (!may("write"))
    return html`<h1>New stack</h1>
      <p>You may look, but make no stack. The role author may.</p>`;
  return html`<${Editor} project=${project} stack=${stack} first=${first} />`;
}

/** What was written for a stack that is gone, for a new one. */
const handed = {
  /** @type {import("./draft.js").Written | null} */
  written: null,
  taken() {
    const found = this.written;
    this.written = null;
    return found;
  },
};

/**
 * stack: null for a new one.
 * @param {{project: string, first: import("./draft.js").Written,
 *   stack: import("../vendor/preact.js").Signal<import("./loading.js").Loaded | null>}} props
 */
function Editor({ project, stack, first }) {
  const begun = stack.value;
  const draft = useMemo(() => draftOf(first), []);
  const within = begun?.within ?? null;
  const readonly = !may("write") || within !== null;
  const check = useMemo(() => {
    const path = begun
      ? `${pathOf(begun.name, begun.id)}/preview?show_nested=true`
      : "/stacks/preview";
    const method = begun ? "PUT" : "POST";
    return checking({ project, method, path, draft, isNew: begun === null });
  }, []);
  useEffect(() => check.stop, []);
  const leaving = useSignal(true);
  const renew = () => {
    handed.written = {
      ...first,
      name: "",
      texts: draft.texts.value,
      options: { ...draft.options.value, add: [], clear: [], only: "", except: "" },
    };
    leaving.value = false;
    go(href(project, "new"));
  };
  return html`<div class="page-head edit-head">
      <h1>${begun ? html`${readonly ? "Look at" : "Edit"} <span class="breaks">${begun.name}</span>` : "New stack"}</h1>
      ${begun && html`<${StatusBadge} action=${begun.action} status=${begun.status} />`}
      <div class="acts">
        ${begun && html`<a class="button" href=${href(project, "stack", begun.name, begun.id)}>Back to the stack</a>`}
        ${!readonly && html`<${Send} project=${project} stack=${stack} draft=${draft} check=${check} leaving=${leaving} />`}
      </div>
    </div>
    ${
      within &&
      html`<p role="note">This stack is inside of another, and changes with it:
      <a class="breaks" href=${href(project, "edit", within.name, within.id)}>edit ${within.name}</a>.</p>`
    }
    ${readonly && !within && html`<p role="note">You may look at this stack, but not change it. The role author may.</p>`}
    ${begun && html`<${Meanwhile} project=${project} stack=${stack} draft=${draft} check=${check} renew=${renew} />`}
    <div class=${`edit ${readonly ? "alone" : ""}`}>
      <${Texts} draft=${draft} check=${check} isNew=${begun === null} readonly=${readonly} />
      ${
        !readonly &&
        html`<${PlanBeside} draft=${draft} check=${check} isNew=${begun === null}
          underWay=${begun?.status === "IN_PROGRESS"} />`
      }
    </div>
    <${Leaving} when=${() => leaving.value && !readonly && draft.changed.value} />`;
}
