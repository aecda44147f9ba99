/** The plan panel: planned changes and stops. */

import { span } from "../parts/ago.js";
import { Changes } from "../parts/changes.js";
import { Icon } from "../parts/icon.js";
import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";
import { changesOf, depth, open, summary } from "./plan.js";

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
    <p class="edit-said" role="status">${statusText(plan, problem, findings.length, current)}</p>
    ${underWay && html`<p class="muted">A change is in progress. Applying this plan supersedes it.</p>`}
    ${current && problem !== null && html`<${ProblemBox} error=${problem} />`}
    ${
      plan &&
      html`<div class=${current ? "column" : "column old"}>
      <${Stops} plan=${plan} draft=${draft} />
      ${plan.groups.map((group) => html`<${Group} key=${group.kind} group=${group} draft=${draft} />`)}
      ${
        plan.stale.length > 0 &&
        html`<p>Out of date (this partial update does not change them):
          <span class="breaks"> ${plan.stale.join(", ")}</span></p>`
      }
      <p class="muted">Plan <code title=${plan.digest}>${plan.digest.slice(0, 12)}</code>:
        ${" "}exactly this plan is applied.</p>
    </div>`
    }
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
        .map((one) => html`<${Resource} key=${one.path} kind=${kind} one=${one} draft=${draft} />`)}
    </ul>
    ${
      resources.length > MANY &&
      html`<details>
        <summary>${resources.length - MANY} more</summary>
        <ul class="breaks">${resources.slice(MANY).map((one) => html`<li key=${one.path}><code>${one.path}</code></li>`)}</ul>
      </details>`
    }
  </section>`;
}

/** Operation of each kind of change. @type {Record<string, string>} */
const OPERATION = { deleted: "delete", replaced: "replace", updated: "update", added: "create" };

/** @param {{kind: string, one: import("./plan.js").Planned, draft: Draft}} props */
function Resource({ kind, one, draft }) {
  const changes = kind === "deleted" ? {} : changesOf(one);
  const left = open(kind, one);
  const rule = `${one.path}:pre-${OPERATION[kind]}`;
  const { add } = draft.options.value;
  const set = add.includes(rule);
  return html`<li class="edit-resource" data-depth=${Math.min(depth(one), 5)}>
    <div class="row">
      <code class="breaks name">${one.path}</code>
      <span class="muted breaks">${one.resource_type}</span>
      <button class="plain stop-here" aria-pressed=${set ? "true" : "false"}
        aria-label=${`Stop before ${one.path}`} title=${`Breakpoint for this change: ${rule}`}
        onClick=${() => draft.choose({ add: set ? add.filter((other) => other !== rule) : [...add, rule] })}>
        <${Icon} name="gate" />
      </button>
    </div>
    ${left && html`<p class=${one.denied ? "wrong" : "unsure"}>${one.denied ? "Forbidden: " : ""}${left}</p>`}
    ${
      Object.keys(changes).length > 0 &&
      (kind === "added"
        ? html`<details><summary>${Object.keys(changes).length} properties</summary><${Changes} changes=${changes} /></details>`
        : html`<${Changes} changes=${changes} />`)
    }
  </li>`;
}

/** @param {{plan: Plan, draft: Draft}} props */
function Stops({ plan, draft }) {
  const { clear } = draft.options.value;
  if (plan.stops.length === 0 && clear.length === 0) return html`<p class="muted">No stops.</p>`;
  return html`<section class="edit-stops" aria-labelledby="stops">
    <h3 id="stops">Stops <span class="muted">${plan.stops.length}</span></h3>
    <ol>
      ${plan.stops.map(
        (one, index) =>
          html`<${Stop} key=${`${index} ${one.path}:${one.point}`} one=${one} draft=${draft} />`,
      )}
    </ol>
    ${clear.map(
      (rule) => html`<p key=${rule} class="row muted">Skipped: <code class="breaks">${rule}</code>
        <button class="plain" onClick=${() => draft.choose({ clear: clear.filter((one) => one !== rule) })}>Restore</button></p>`,
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
const AFTERWARDS = {
  stop: "the stack stops",
  continue: "the change continues",
  reject: "the operation is rejected",
};

/** @param {{one: import("./plan.js").Stop, draft: Draft}} props */
function Stop({ one, draft }) {
  const rule = `${one.path}:${one.point}`;
  const { add, clear } = draft.options.value;
  const leaveOut = () =>
    add.includes(rule)
      ? draft.choose({ add: add.filter((other) => other !== rule) })
      : draft.choose({ clear: [...clear, rule] });
  return html`<li>
    <div class="row">
      <span class="tone-gate"><${Icon} name="gate" /></span>
      <strong class="breaks">${one.point}${one.path && html` <code>${one.path}</code>`}</strong>
      <span>${MODES[one.mode] ?? one.mode}${one.certain ? "" : " (possibly)"}</span>
      <button class="plain" aria-label=${`Skip ${rule}`} onClick=${leaveOut}>Skip</button>
    </div>
    ${
      one.mode === "wait" &&
      html`<p class="muted breaks">
        ${one.approvals > 1 ? `${one.approvals} approvals from` : "Approval from"} ${one.answer_by.join(" or ")}.
        ${one.timeout_seconds === null ? " After the default timeout" : ` After ${span(one.timeout_seconds)}`}
        ${` ${AFTERWARDS[one.on_timeout] ?? one.on_timeout}.`}
      </p>`
    }
  </li>`;
}
