/** Details of a hook: resource, approvers, notifications, deadline and planned changes. */

import { href } from "../app/route.js";
import { Ago } from "../parts/ago.js";
import { Changes, displayText } from "../parts/changes.js";
import { CopyableId } from "../parts/copy.js";
import { driftText } from "../parts/drift_text.js";
import { html } from "../vendor/preact.js";
import { Countdown, TimeBar } from "./countdown.js";
import { AT_DEADLINE, approversText, deliveryText, principalText } from "./hook_text.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../api/documents.js").HookDrift} HookDrift */
/** @typedef {import("../api/documents.js").Entry} Entry */

/** Operations that create a resource with the given properties. */
const CREATING = new Set(["create", "adopt"]);
/** Number of plan entries shown without expanding. */
const PLAN_ROWS = 12;

/** @param {{project: string, hook: Hook, history: readonly Entry[]}} props history: the decision history, as far as it is loaded */
export function Facts({ project, hook, history }) {
  const waits = hook.state === "waiting";
  return html`<dl class="facts">
    <dt>Stack</dt>
    <dd><${StackLink} project=${project} hook=${hook} /></dd>
    <${ResourceFacts} hook=${hook} />
    <dt>${waits ? "Waiting since" : "Opened"}</dt>
    <dd><${Ago} at=${hook.opened_at} />, requested by ${hook.requested_by}</dd>
    ${
      hook.resource?.renewed &&
      html`<dt>Asked again</dt>
        <dd class="breaks">Earlier answers do not count: ${hook.resource.renewed.reason}.</dd>`
    }
    ${
      waits &&
      hook.deadline &&
      html`<dt>Deadline</dt>
        <dd><${Countdown} hook=${hook} />, then ${AT_DEADLINE[hook.on_timeout]} <${TimeBar} hook=${hook} /></dd>`
    }
    <dt>Approvers</dt>
    <dd>${approversText(hook)}${hook.escalated_at && html` (escalated <${Ago} at=${hook.escalated_at} />)`}</dd>
    <${HandedOver} hook=${hook} history=${history} />
    ${
      hook.approvals.needed > 1 &&
      html`<dt>Approvals</dt>
        <dd>${hook.approvals.given} of ${hook.approvals.needed} given${hook.approvals.by.length > 0 && `, by ${hook.approvals.by.join(", ")}`}</dd>`
    }
    <dt>Hook ID</dt>
    <dd><${CopyableId} id=${hook.id} what="the ID of the hook" /></dd>
    <dt>Notified</dt>
    <dd><${Notifications} hook=${hook} /></dd>
    <${EarlierAnswers} hook=${hook} />
  </dl>`;
}

/** @param {{project: string, hook: Hook}} props */
export function StackLink({ project, hook }) {
  const target = href(project, "stack", hook.root_stack_name, hook.root_stack_id);
  return html`<a class="breaks" href=${target}>${hook.root_stack_name}</a>`;
}

/** @param {{hook: Hook}} props */
function ResourceFacts({ hook }) {
  const { resource } = hook;
  if (!resource) return null;
  const dependents = resource.dependents ?? [];
  return html`
    <dt>Type</dt>
    <dd><code class="breaks">${resource.type}</code></dd>
    ${
      resource.physical_id &&
      html`<dt>Physical ID</dt>
        <dd><code class="breaks">${resource.physical_id}</code></dd>`
    }
    ${
      dependents.length > 0 &&
      html`<dt>Blocking</dt>
        <dd><code class="breaks">${dependents.join(", ")}</code></dd>`
    }
  `;
}

/** @param {{hook: Hook, history: readonly Entry[]}} props */
function HandedOver({ hook, history }) {
  const handed = history.filter((item) => item.kind === "handed-over");
  if (!hook.assigned) return null;
  return html`<dt>Handed over</dt>
    <dd>
      to ${principalText(hook.assigned)}
      ${handed.map((item) => html`<div key=${item.number} class="note">${item.by}: ${item.reason ? html`<q class="breaks">${item.reason}</q>` : "no note"}</div>`)}
    </dd>`;
}

/** @param {{hook: Hook}} props */
function Notifications({ hook }) {
  const reminded =
    hook.reminders > 0 &&
    ` ${hook.reminders === 1 ? "1 reminder" : `${hook.reminders} reminders`} sent.`;
  if (hook.asked.length === 0)
    return html`<span class="muted">No subscription matches this hook.</span>${reminded}`;
  return html`<ul class="notifications">
      ${hook.asked.map(
        (item) => html`<li key=${item.subscription} data-state=${item.state}>
          <span class="breaks">${item.channel} <code>${item.target}</code></span>: ${deliveryText(item)}
          ${item.next_at && item.state === "pending" && html`, next attempt <${Ago} at=${item.next_at} />`}
        </li>`,
      )}
    </ul>${reminded}`;
}

/** Answer data of earlier hooks in this change. @param {{hook: Hook}} props */
function EarlierAnswers({ hook }) {
  const answers = Object.entries(hook.answers);
  if (answers.length === 0) return null;
  return html`<dt>Earlier answers</dt>
    <dd>${answers.map(([at, data]) => html`<div key=${at} class="breaks"><code>${at}</code>: ${displayText(data)}</div>`)}</dd>`;
}

/** The planned changes. level: heading level. @param {{hook: Hook, level: number}} props */
export function PlannedChanges({ hook, level }) {
  const heading = `h${level}`;
  if (!hook.resource) return html`<${StackPlan} hook=${hook} heading=${heading} />`;
  const { operation, properties, changes, seen, drift } = hook.resource;
  const all = CREATING.has(operation ?? "") ? asNewValues(properties) : changes;
  const rows = Object.entries(all);
  return html`<div class="planned">
    <${heading}>${plannedText(operation)}<//>
    ${drift && html`<p>${driftText(drift)}</p>`}
    ${drift && operation !== "drift" && drift.differences.length > 0 && html`<${Differences} drift=${drift} />`}
    ${rows.length === 0 ? html`<p class="muted">${noChangesText(operation)}</p>` : html`<${Changes} changes=${all} />`}
    ${
      Object.keys(seen ?? {}).length > 0 &&
      html`<${heading}>Observed state<//>
        <pre class="code" tabindex="0">${JSON.stringify(seen, null, 2)}</pre>`
    }
  </div>`;
}

/** @param {Record<string, unknown>} properties */
function asNewValues(properties) {
  return Object.fromEntries(
    Object.entries(properties).map(([name, target]) => [name, { to: target }]),
  );
}

/** @param {string | null} operation */
function plannedText(operation) {
  if (operation === "drift") return "Repair";
  return operation ? `Planned ${operation}` : "Planned changes";
}

/** What has changed while the hook waited. @param {{drift: HookDrift}} props */
function Differences({ drift }) {
  const changes = Object.fromEntries(
    drift.differences.map(({ path, desired, observed }) => [path, { from: desired, to: observed }]),
  );
  return html`<${Changes} changes=${changes} />`;
}

/** @param {string | null} operation */
function noChangesText(operation) {
  if (operation === "drift") return "No property differs.";
  return operation === "delete" ? "The resource will be deleted." : "No property changes.";
}

/** The plan of a whole stack. @param {{hook: Hook, heading: string}} props */
function StackPlan({ hook, heading }) {
  const plan = hook.change?.plan ?? [];
  const line = (/** @type {{name: string, type?: string, change?: string}} */ item) =>
    html`<li key=${item.name}><span class="what">${item.change}</span> <code class="breaks">${item.name}</code> <span class="muted breaks">${item.type}</span></li>`;
  return html`<div class="planned">
    <${heading}>Planned ${(hook.change?.action ?? "change").toLowerCase()}<//>
    ${plan.length === 0 && html`<p class="muted">No changes.</p>`}
    <ul class="plan">${plan.slice(0, PLAN_ROWS).map(line)}</ul>
    ${
      plan.length > PLAN_ROWS &&
      html`<details>
        <summary>${plan.length - PLAN_ROWS} more</summary>
        <ul class="plan">${plan.slice(PLAN_ROWS).map(line)}</ul>
      </details>`
    }
  </div>`;
}
