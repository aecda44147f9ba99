/** The plan panel: the state of the plan, and the plan. */

import { ProblemBox } from "../parts/problem.js";
import { html } from "../vendor/preact.js";
import { summary } from "./plan.js";
import { PlanDetails } from "./plan_details.js";

/**
 * @typedef {import("./plan.js").Plan} Plan
 * @typedef {import("./draft.js").Draft} Draft
 */

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
      <${PlanDetails} plan=${plan} draft=${draft} />
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
