/** The plan beside the texts: what would be done, and where it would stop. */

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

/** More rows of a kind are shown on demand. */
const MANY = 60;

/**
 * underWay: something is being done to the stack.
 * @param {{draft: Draft, check: ReturnType<typeof import("./checking.js").checking>, isNew: boolean,
 *   underWay: boolean}} props
 */
export function PlanBeside({ draft, check, isNew, underWay }) {
  const { plan, problem, findings } = check.answer.value;
  const current = check.isCurrent.value;
  return html`<section class="edit-plan" aria-labelledby="plan" aria-busy=${current ? undefined : "true"}>
    <h2 id="plan">Plan</h2>
    <p class="edit-said" role="status">${said(plan, problem, findings.length, current)}</p>
    ${underWay && html`<p class="muted">Something is being done to the stack: what you send takes the place of it.</p>`}
    ${current && problem !== null && html`<${ProblemBox} error=${problem} />`}
    ${
      plan &&
      html`<div class=${current ? "column" : "column old"}>
      <${Stops} plan=${plan} draft=${draft} />
      ${plan.groups.map((group) => html`<${Group} key=${group.kind} group=${group} draft=${draft} />`)}
      ${
        plan.stale.length > 0 &&
        html`<p>Left as they are, though the template wants them otherwise:
          <span class="breaks"> ${plan.stale.join(", ")}</span></p>`
      }
      <p class="muted">Plan <code title=${plan.digest}>${plan.digest.slice(0, 12)}</code>:
        ${isNew ? " this and no other is made." : " this and no other is carried out."}</p>
    </div>`
    }
  </section>`;
}

/** @param {Plan | null} plan @param {unknown} problem @param {number} findings @param {boolean} current */
function said(plan, problem, findings, current) {
  if (!current) return "Being worked out…";
  if (plan) return `${summary(plan)}.`;
  if (problem) return "There is no plan.";
  if (findings > 0)
    return `There is no plan: ${findings === 1 ? "one thing is" : `${findings} things are`} wrong.`;
  return "Being worked out…";
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

/** What is done, by kind. @type {Record<string, string>} */
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
        aria-label=${`Stop before ${one.path}`} title=${`A breakpoint for this change: ${rule}`}
        onClick=${() => draft.choose({ add: set ? add.filter((other) => other !== rule) : [...add, rule] })}>
        <${Icon} name="gate" />
      </button>
    </div>
    ${left && html`<p class=${one.denied ? "wrong" : "unsure"}>${one.denied ? "Will be refused: " : ""}${left}</p>`}
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
  if (plan.stops.length === 0 && clear.length === 0)
    return html`<p class="muted">It stops nowhere.</p>`;
  return html`<section class="edit-stops" aria-labelledby="stops">
    <h3 id="stops">Stops <span class="muted">${plan.stops.length}</span></h3>
    <ol>
      ${plan.stops.map(
        (one, index) =>
          html`<${Stop} key=${`${index} ${one.path}:${one.point}`} one=${one} draft=${draft} />`,
      )}
    </ol>
    ${clear.map(
      (rule) => html`<p key=${rule} class="row muted">Left out: <code class="breaks">${rule}</code>
        <button class="plain" onClick=${() => draft.choose({ clear: clear.filter((one) => one !== rule) })}>Put back</button></p>`,
    )}
  </section>`;
}

/** What a rule does, in words. @type {Record<string, string>} */
const MODES = { wait: "waits", notify: "tells, and goes on", stop: "ends there, stopped" };
/** @type {Record<string, string>} */
const AFTERWARDS = {
  stop: "the stack is stopped",
  continue: "it goes on",
  reject: "it is rejected",
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
      <span>${MODES[one.mode] ?? one.mode}${one.certain ? "" : ", perhaps"}</span>
      <button class="plain" aria-label=${`Leave out ${rule}`} onClick=${leaveOut}>Leave out</button>
    </div>
    ${
      one.mode === "wait" &&
      html`<p class="muted breaks">
        For ${one.approvals > 1 ? `${one.approvals} of ` : ""}${one.answer_by.join(", ")}.
        ${one.timeout_seconds === null ? " After the usual time" : ` After ${span(one.timeout_seconds)}`}
        ${` ${AFTERWARDS[one.on_timeout] ?? one.on_timeout}.`}
      </p>`
    }
  </li>`;
}
