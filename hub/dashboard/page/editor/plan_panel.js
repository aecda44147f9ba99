/** The plan panel: planned changes and stops. */

import { Ago, formatDuration } from "../parts/ago.js";
import { Changes } from "../parts/changes.js";
import { Icon } from "../parts/icon.js";
import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";
import { changesOf, depth, summary, uncertainty } from "./plan.js";

/**
 * @typedef {import("./plan.js").Plan} Plan
 * @typedef {import("./draft.js").Draft} Draft
 */

/** Rows of a kind shown without expanding. */
const MANY = 60;

/**
 * underWay: a change of the stack is in progress.
 * @param {{draft: Draft, check: ReturnType<typeof import("./preview.js").livePreview>,
 *   underWay: boolean}} props
 */
export function PlanPanel({ draft, check, underWay }) {
  const { plan, problem, findings } = check.answer.value;
  const current = check.isCurrent.value;
  return html`<section class="edit-plan" aria-labelledby="plan" aria-busy=${current ? undefined : "true"}>
    <h2 id="plan">Plan</h2>
    <p class="edit-plan-status" role="status">${statusText(plan, problem, findings.length, current)}</p>
    ${underWay && html`<p class="muted">A change is in progress. Applying this plan supersedes it.</p>`}
    ${current && problem !== null && html`<${ProblemBox} error=${problem} />`}
    ${
      plan &&
      html`<div class=${current ? "column" : "column old"}>
      <${Stops} plan=${plan} draft=${draft} />
      ${plan.groups.map((group) => html`<${Group} key=${group.kind} group=${group} draft=${draft} />`)}
      ${
        plan.outOfDate.length > 0 &&
        html`<p>Out of date (this partial update does not change them):
          <span class="breaks"> ${plan.outOfDate.join(", ")}</span></p>`
      }
      <${AdoptedValues} adopted=${plan.adopted} />
      <p class="muted">Plan <code title=${plan.digest}>${plan.digest.slice(0, 12)}</code>:
        ${" "}exactly this plan is applied.</p>
    </div>`
    }
  </section>`;
}

/** @param {{adopted: Plan["adopted"]}} props */
function AdoptedValues({ adopted }) {
  if (adopted.length === 0) return null;
  return html`<section aria-label="Adopted values">
    <h3>Adopted values <span class="muted">${adopted.length}</span></h3>
    <ul>${adopted.map(
      ({
        name,
        value,
      }) => html`<li key=${name} class="breaks"><code>${name}: ${JSON.stringify(value.value)}</code>
        ${" "}<span class="muted">adopted by ${value.adopted_by} <${Ago} at=${value.adopted_at} />; the template says
        ${" "}<code>${JSON.stringify(value.template)}</code></span></li>`,
    )}</ul>
  </section>`;
}

/** @param {Plan | null} plan @param {unknown} problem @param {number} findings @param {boolean} current */
function statusText(plan, problem, findings, current) {
  if (!current) return "Planning…";
  if (plan) return `${summary(plan)}.`;
  if (problem) return "No plan.";
  if (findings > 0) return `No plan: ${findings === 1 ? "1 error" : `${findings} errors`}.`;
  return "Planning…";
}

/** @param {{group: import("./plan.js").Group, draft: Draft}} props */
function Group({ group, draft }) {
  const { kind, title, resources } = group;
  return html`<section class="edit-group" data-kind=${kind} aria-label=${`${title} resources`}>
    <h3>${title} <span class="muted">${resources.length}</span></h3>
    <ul>
      ${resources
        .slice(0, MANY)
        .map(
          (resource) =>
            html`<${Resource} key=${resource.path} kind=${kind} resource=${resource} draft=${draft} />`,
        )}
    </ul>
    ${
      resources.length > MANY &&
      html`<details>
        <summary>${resources.length - MANY} more</summary>
        <ul class="breaks">${resources.slice(MANY).map((resource) => html`<li key=${resource.path}><code>${resource.path}</code></li>`)}</ul>
      </details>`
    }
  </section>`;
}

/** Operation of each kind of change. @type {Record<string, string>} */
const OPERATION = { deleted: "delete", replaced: "replace", updated: "update", added: "create" };

/** @param {{kind: string, resource: import("./plan.js").Planned, draft: Draft}} props */
function Resource({ kind, resource, draft }) {
  const changes = kind === "deleted" ? {} : changesOf(resource);
  const left = uncertainty(kind, resource);
  const rule = `${resource.path}:pre-${OPERATION[kind]}`;
  const { add } = draft.options.value;
  const set = add.includes(rule);
  const count = Object.keys(changes).length;
  return html`<li class="edit-resource" data-depth=${Math.min(depth(resource), 5)}>
    <div class="row">
      <code class="breaks name">${resource.path}</code>
      <span class="muted breaks">${resource.resource_type}</span>
      <button class="plain stop-here" aria-pressed=${set ? "true" : "false"}
        aria-label=${`Stop before ${resource.path}`} title=${`Breakpoint for this change: ${rule}`}
        onClick=${() => draft.choose({ add: set ? add.filter((other) => other !== rule) : [...add, rule] })}>
        <${Icon} name="gate" />
      </button>
    </div>
    ${left && html`<p class=${resource.denied ? "wrong" : "uncertain"}>${resource.denied ? "Forbidden: " : ""}${left}</p>`}
    ${resource.moved_from && html`<p class="muted breaks">Moved from ${resource.moved_from}</p>`}
    ${resource.imported_id && html`<p class="muted breaks">Imported: ${resource.imported_id}</p>`}
    ${resource.replace_reason && html`<p class="muted breaks">${resource.replace_reason}</p>`}
    ${
      count > 0 &&
      (kind === "added"
        ? html`<details><summary>${count === 1 ? "1 property" : `${count} properties`}</summary><${Changes} changes=${changes} /></details>`
        : html`<${Changes} changes=${changes} />`)
    }
  </li>`;
}

/** @param {{plan: Plan, draft: Draft}} props */
function Stops({ plan, draft }) {
  const { clear } = draft.options.value;
  if (plan.stops.length === 0 && clear.length === 0)
    return html`<p class="muted">No breakpoints.</p>`;
  return html`<section class="edit-stops" aria-labelledby="stops">
    <h3 id="stops">Breakpoints <span class="muted">${plan.stops.length}</span></h3>
    <ol>
      ${plan.stops.map(
        (stop, index) =>
          html`<${Stop} key=${`${index} ${stop.path}:${stop.point}`} stop=${stop} draft=${draft} />`,
      )}
    </ol>
    ${clear.map(
      (rule) => html`<p key=${rule} class="row muted">Skipped: <code class="breaks">${rule}</code>
        <button class="plain" onClick=${() => draft.choose({ clear: clear.filter((item) => item !== rule) })}>Restore</button></p>`,
    )}
  </section>`;
}

/** Rule modes as text. @type {Record<string, string>} */
const MODES = {
  wait: "waits for approval",
  notify: "notifies and continues",
  stop: "stops the stack",
};
/** @type {Record<string, string>} */
const DEADLINE_TEXTS = {
  stop: "the stack stops",
  continue: "the change continues",
  reject: "the operation is rejected",
};

/** @param {{stop: import("./plan.js").Stop, draft: Draft}} props */
function Stop({ stop, draft }) {
  const rule = `${stop.path}:${stop.point}`;
  const { add, clear } = draft.options.value;
  const leaveOut = () =>
    add.includes(rule)
      ? draft.choose({ add: add.filter((other) => other !== rule) })
      : draft.choose({ clear: [...clear, rule] });
  return html`<li>
    <div class="row">
      <span class="tone-gate"><${Icon} name="gate" /></span>
      <strong class="breaks">${stop.point}${stop.path && html` <code>${stop.path}</code>`}</strong>
      <span>${MODES[stop.mode] ?? stop.mode}${stop.certain ? "" : " (possibly)"}</span>
      <button class="plain" aria-label=${`Skip ${rule}`} onClick=${leaveOut}>Skip</button>
    </div>
    ${
      stop.mode === "wait" &&
      html`<p class="muted breaks">
        ${stop.approvals > 1 ? `${stop.approvals} approvals from` : "Approval from"} ${stop.answer_by.join(" or ")}.
        ${stop.timeout_seconds === null ? " After the default timeout" : ` After ${formatDuration(stop.timeout_seconds)}`}
        ${` ${DEADLINE_TEXTS[stop.on_timeout] ?? stop.on_timeout}.`}
      </p>`
    }
  </li>`;
}
