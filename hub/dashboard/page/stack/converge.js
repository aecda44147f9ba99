/** The plan of a converge, and the converge that applies it. */

import { call, Problem } from "../api/client.js";
import { may } from "../api/session.js";
import { notify } from "../app/notices.js";
import { planOf, summary } from "../editor/plan.js";
import { PlanDetails } from "../editor/plan_details.js";
import { Changes } from "../parts/changes.js";
import { Dialog, useMounted } from "../parts/dialog.js";
import { driftText } from "../parts/drift_text.js";
import { useFetch } from "../parts/fetch.js";
import { Loading } from "../parts/loading.js";
import { ProblemBox } from "../parts/problem.js";
import { html, useSignal } from "../vendor/preact.js";

/** @typedef {import("./watch.js").WatchedStack} WatchedStack */

/**
 * The button that shows the plan. Only a root stack can be converged.
 * @param {{watched: WatchedStack}} props
 */
export function ConvergePlan({ watched }) {
  const open = useSignal(false);
  const stack = watched.stack.value;
  if (!stack || watched.gone.value) return null;
  if (stack.root && stack.root !== stack.id)
    return html`<p class="muted">To repair it, converge the root stack.</p>`;
  const close = () => {
    open.value = false;
  };
  return html`<div class="row">
      <button onClick=${() => {
        open.value = true;
      }}>Show plan…</button>
    </div>
    ${open.value && html`<${PlanDialog} watched=${watched} close=${close} />`}`;
}

/** @param {{watched: WatchedStack, close: () => void}} props */
function PlanDialog({ watched, close }) {
  /** Which plan is shown: a refused converge has observed the stack. */
  const number = useSignal(0);
  const busy = useSignal(false);
  const refusal = useSignal(/** @type {unknown} */ (null));
  const mounted = useMounted();
  const { data, failure } = useFetch(
    async () => planOf(await watched.get("/drift/plan")),
    [watched, number.value],
  );
  const plan = data.value;
  async function converge() {
    if (!plan) return;
    busy.value = true;
    refusal.value = null;
    try {
      const options = { plan_digest: plan.digest };
      await call("POST", watched.project, `${watched.path}/actions`, { converge: options });
      notify(`${watched.name}: Repairing drift.`, "good");
      watched.reread();
      if (mounted.current) close();
    } catch (error) {
      refusal.value = error;
      if (error instanceof Problem && error.type === "PlanChanged") number.value += 1;
    } finally {
      busy.value = false;
    }
  }
  return html`<${Dialog} title="Plan of a converge" onClose=${close}>
    ${!plan && !failure.value && html`<${Loading} what="the plan" />`}
    <${ProblemBox} error=${failure.value} />
    ${
      plan &&
      html`<p role="status">${summary(plan)}.</p>
      <${PlanDetails} plan=${plan} draft=${null} note=${(/** @type {string} */ path) => note(watched, path)} />
      <p class="muted">Plan <code title=${plan.digest}>${plan.digest.slice(0, 12)}</code>, from the last observation. A
        converge observes the stack again, and applies exactly this plan or nothing.</p>`
    }
    <${ProblemBox} error=${refusal.value} />
    <div class="acts">
      <button onClick=${close}>Cancel</button>
      ${may("write") && html`<button class="first" disabled=${busy.value || !plan} onClick=${converge}>Converge</button>`}
    </div>
  <//>`;
}

/**
 * What was observed, and the values that a repair sets.
 * @param {WatchedStack} watched @param {string} path
 */
function note(watched, path) {
  const drift = watched.drift.value.get(path);
  if (!drift) return null;
  const changes = Object.fromEntries(
    drift.differences.map(({ path, desired, observed }) => [path, { from: observed, to: desired }]),
  );
  return html`<p class="muted breaks">${driftText(drift)}</p>
    ${drift.differences.length > 0 && html`<${Changes} changes=${changes} />`}`;
}
