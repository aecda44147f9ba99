/** Answers one hook by right of its token: what the links in notices lead to. */

import { Problem, problemIn } from "../api/client.js";
import { showTheme } from "../app/theme.js";
import { Field } from "../parts/field.js";
import { ProblemBox } from "../parts/problem.js";
import { html, render, useSignal } from "../vendor/preact.js";

/** Seconds that the server may take. */
const PATIENCE = 60;

/** @type {Record<string, string>} */
const DONE = {
  continue: "Continued: the change goes on.",
  reject: "Rejected: the change does not go on here.",
};

/**
 * Throws Problem.
 * @param {string} decision
 * @param {string} reason
 * @returns {Promise<import("../api/documents.js").Hook & {decision: string}>}
 */
async function answered(decision, reason) {
  const token = location.hash.slice(1);
  if (!token) {
    throw new Problem({
      type: "NoToken",
      message: "The address has no token behind its #",
      remedy: "Open the link of the notice as it is, or answer in the dashboard's inbox.",
    });
  }
  const answer = await fetch(`${location.pathname.replace(/\/$/, "")}/signal`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify({ decision, reason }),
    signal: AbortSignal.timeout(PATIENCE * 1000),
  });
  if (!answer.ok) throw await problemIn(answer);
  return answer.json();
}

function AnswerPage() {
  const reason = useSignal("");
  const done = useSignal("");
  const wrong = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);

  /** @param {string} decision */
  async function answer(decision) {
    busy.value = true;
    wrong.value = null;
    try {
      const hook = await answered(decision, reason.value);
      const waits = hook.state === "waiting";
      done.value = waits ? "Taken. More people are to approve." : (DONE[decision] ?? decision);
    } catch (error) {
      wrong.value = error;
    } finally {
      busy.value = false;
    }
  }

  return html`<main class="signin card">
    <h1>A hook waits for your answer</h1>
    <p class="muted">Nothing has been decided by opening this page.</p>
    <${Field} label="Reason" hint="It goes into the audit trail.">
      ${(/** @type {object} */ needs) =>
        html`<input value=${reason.value} ...${needs} onInput=${(
          /** @type {{currentTarget: HTMLInputElement}} */ event,
        ) => {
          reason.value = event.currentTarget.value;
        }} />`}
    <//>
    <div class="row">
      <button class="first" disabled=${busy.value} onClick=${() => answer("continue")}>Continue</button>
      <button class="danger" disabled=${busy.value} onClick=${() => answer("reject")}>Reject</button>
    </div>
    <p role="status">${done.value}</p>
    <${ProblemBox} error=${wrong.value} />
  </main>`;
}

showTheme();
render(html`<${AnswerPage} />`, /** @type {HTMLElement} */ (document.getElementById("app")));
