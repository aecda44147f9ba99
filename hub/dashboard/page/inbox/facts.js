/** All one needs to decide: what waits and why, who may answer, who was told, what would change. */

import { href } from "../app/route.js";
import { Ago } from "../parts/ago.js";
import { Changes, shown } from "../parts/changes.js";
import { html } from "../vendor/preact.js";
import { Countdown, TimeBar } from "./countdown.js";
import { AT_DEADLINE, answerers, arrival, person } from "./words.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../api/documents.js").Entry} Entry */

/** Operations by which a resource comes to be what its properties say. */
const MAKES = new Set(["create", "adopt"]);
/** So many steps of a plan are read without asking for more. */
const PLAN = 12;

/** @param {{project: string, hook: Hook, said: readonly Entry[]}} props said: the trail, as far as it is read */
export function Facts({ project, hook, said }) {
  const waits = hook.state === "waiting";
  return html`<dl class="facts">
    <dt>Stack</dt>
    <dd><${StackLink} project=${project} hook=${hook} /></dd>
    <${OfResource} hook=${hook} />
    <dt>Waiting since</dt>
    <dd><${Ago} at=${hook.opened_at} />, asked for by ${hook.requested_by}</dd>
    ${
      waits &&
      html`<dt>Deadline</dt>
        <dd><${Countdown} hook=${hook} />, then ${AT_DEADLINE[hook.on_timeout]} <${TimeBar} hook=${hook} /></dd>`
    }
    <dt>For</dt>
    <dd>${answerers(hook)}${hook.escalated_at && html` (others, too, since <${Ago} at=${hook.escalated_at} />)`}</dd>
    <${HandedOver} hook=${hook} said=${said} />
    ${
      hook.approvals.needed > 1 &&
      html`<dt>Approvals</dt>
        <dd>${hook.approvals.given} of ${hook.approvals.needed} given${hook.approvals.by.length > 0 && `, by ${hook.approvals.by.join(", ")}`}</dd>`
    }
    <dt>Told</dt>
    <dd><${Told} hook=${hook} /></dd>
    <${Earlier} hook=${hook} />
  </dl>`;
}

/** @param {{project: string, hook: Hook}} props */
export function StackLink({ project, hook }) {
  const to = href(project, "stack", hook.root_stack_name, hook.root_stack_id);
  return html`<a class="breaks" href=${to}>${hook.root_stack_name}</a>`;
}

/** @param {{hook: Hook}} props */
function OfResource({ hook }) {
  const { resource } = hook;
  if (!resource) return null;
  const dependents = resource.dependents ?? [];
  return html`
    <dt>Type</dt>
    <dd><code class="breaks">${resource.type}</code></dd>
    ${
      resource.physical_id &&
      html`<dt>Real thing</dt>
        <dd><code class="breaks">${resource.physical_id}</code></dd>`
    }
    ${
      dependents.length > 0 &&
      html`<dt>Held up by it</dt>
        <dd><code class="breaks">${dependents.join(", ")}</code></dd>`
    }
  `;
}

/** @param {{hook: Hook, said: readonly Entry[]}} props */
function HandedOver({ hook, said }) {
  const handed = said.filter((one) => one.kind === "handed-over");
  if (!hook.assigned) return null;
  return html`<dt>Handed over</dt>
    <dd>
      to ${person(hook.assigned)}
      ${handed.map((one) => html`<div key=${one.number} class="note">${one.by}: ${one.reason ? html`<q class="breaks">${one.reason}</q>` : "without a note"}</div>`)}
    </dd>`;
}

/** @param {{hook: Hook}} props */
function Told({ hook }) {
  const reminded =
    hook.reminders > 0 && ` Reminded ${hook.reminders === 1 ? "once" : `${hook.reminders} times`}.`;
  if (hook.asked.length === 0)
    return html`<span class="muted">Nobody subscribed to be told.</span>${reminded}`;
  return html`<ul class="told">
      ${hook.asked.map(
        (one) => html`<li key=${one.subscription} data-state=${one.state}>
          <span class="breaks">${one.channel} <code>${one.target}</code></span>: ${arrival(one)}
          ${one.next_at && one.state === "pending" && html`, again <${Ago} at=${one.next_at} />`}
        </li>`,
      )}
    </ul>${reminded}`;
}

/** What was answered earlier in this change. @param {{hook: Hook}} props */
function Earlier({ hook }) {
  const answers = Object.entries(hook.answers);
  if (answers.length === 0) return null;
  return html`<dt>Answered before</dt>
    <dd>${answers.map(([at, data]) => html`<div key=${at} class="breaks"><code>${at}</code>: ${shown(data)}</div>`)}</dd>`;
}

/** What would change. level: of its heading. @param {{hook: Hook, level: number}} props */
export function WouldChange({ hook, level }) {
  const heading = `h${level}`;
  if (!hook.resource) return html`<${Planned} hook=${hook} heading=${heading} />`;
  const { operation, properties, changes, seen } = hook.resource;
  const all = MAKES.has(operation ?? "") ? made(properties) : changes;
  const rows = Object.entries(all);
  return html`<div class="would">
    <${heading}>${operation ? `What ${operation} would do` : "What would change"}<//>
    ${rows.length === 0 ? html`<p class="muted">${nothing(operation)}</p>` : html`<${Changes} changes=${all} />`}
    ${
      Object.keys(seen ?? {}).length > 0 &&
      html`<${heading}>What there is to look at<//>
        <pre class="code" tabindex="0">${JSON.stringify(seen, null, 2)}</pre>`
    }
  </div>`;
}

/** @param {Record<string, unknown>} properties */
function made(properties) {
  return Object.fromEntries(Object.entries(properties).map(([name, to]) => [name, { to }]));
}

/** @param {string | null} operation */
function nothing(operation) {
  return operation === "delete" ? "It goes, with all it is." : "No property changes.";
}

/** The plan of a whole stack. @param {{hook: Hook, heading: string}} props */
function Planned({ hook, heading }) {
  const plan = hook.change?.plan ?? [];
  const line = (/** @type {{name: string, type?: string, change?: string}} */ one) =>
    html`<li key=${one.name}><span class="what">${one.change}</span> <code class="breaks">${one.name}</code> <span class="muted breaks">${one.type}</span></li>`;
  return html`<div class="would">
    <${heading}>What the ${(hook.change?.action ?? "change").toLowerCase()} would do<//>
    ${plan.length === 0 && html`<p class="muted">Nothing changes.</p>`}
    <ul class="plan">${plan.slice(0, PLAN).map(line)}</ul>
    ${
      plan.length > PLAN &&
      html`<details>
        <summary>${plan.length - PLAN} more</summary>
        <ul class="plan">${plan.slice(PLAN).map(line)}</ul>
      </details>`
    }
  </div>`;
}
