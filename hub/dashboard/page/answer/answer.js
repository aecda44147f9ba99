/** The page behind the links in hook notifications: answers one hook with its token. */

import { Problem, problemOf } from "../api/client.js";
import { showTheme } from "../app/theme.js";
import { Field } from "../parts/field.js";
import { ProblemBox } from "../parts/problem.js";
import { html, render, useSignal } from "../vendor/preact.js";

/** Request timeout in seconds. */
const PATIENCE = 60;

/** @type {Record<string, string>} */
const DONE = {
  continue: "Continued. The change proceeds.",
  reject: "Rejected. The operation fails.",
};

/**
 * Throws Problem.
 * @param {string} decision
 * @param {string} reason
 * @returns {Promise<import("../api/documents.js").Hook & {decision: string}>}
 */
async function sendAnswer(decision, reason) {
  const token = location.hash.slice(1);
  if (!token) {
    throw new Problem({
      type: "NoToken",
      message: "The link has no token (the part after #)",
      remedy: "Open the complete link from the notification, or answer in the dashboard inbox.",
    });
  }
  const answer = await fetch(`${location.pathname.replace(/\/$/, "")}/signal`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify({ decision, reason }),
    signal: AbortSignal.timeout(PATIENCE * 1000),
  });
  if (!answer.ok) throw await problemOf(answer);
  return answer.json();
}

function AnswerPage() {
  const reason = useSignal("");
  const done = useSignal("");
  const failure = useSignal(/** @type {unknown} */ (null));
  const busy = useSignal(false);

  /** @param {string} decision */
  async function answer(decision) {
    busy.value = true;
    failure.value = null;
    try {
      const hook = await sendAnswer(decision, reason.value);
      const waits = hook.state === "waiting";
      done.value = waits
        ? "Approval recorded. More approvals are required."
        : (DONE[decision] ?? decision);
    } catch (error) {
      failure.value = error;
    } finally {
      busy.value = false;
    }
  }

  return html`<main class="signin card">
    <h1>A hook is waiting for your answer</h1>
    <p class="muted">Opening this page does not decide anything.</p>
    <${Field} label="Reason" hint="Recorded in the audit log.">
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
    <${ProblemBox} error=${failure.value} />
  </main>`;
}

showTheme();
render(html`<${AnswerPage} />`, /** @type {HTMLElement} */ (document.getElementById("app")));
