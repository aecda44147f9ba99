/** Display of an error: place, reason and remedy. */

import { Problem } from "../api/client.js";
import { html } from "../vendor/preact.js";
import { span } from "./ago.js";

/** @param {unknown} error @returns {Problem} */
export function asProblem(error) {
  if (error instanceof Problem) return error;
  const message = error instanceof Error ? error.message : String(error);
  const remedy = "This is an error in the page. Reload it; nothing on the server is affected.";
  return new Problem({ type: "PageError", message, remedy });
}

/** @param {{error: unknown}} props */
export function ProblemBox({ error }) {
  if (!error) return null;
  const problem = asProblem(error);
  const findings = problem.findings.length > 1 ? problem.findings : [];
  return html`<div class="problem" role="alert">
    <p class="reason">
      ${problem.place && !findings.length && html`<code>${problem.place}</code>${": "}`}${problem.message}
    </p>
    ${problem.remedy && html`<p>${problem.remedy}</p>`}
    ${problem.wait > 0 && html`<p>Try again in ${span(problem.wait)}.</p>`}
    ${
      findings.length > 0 &&
      html`<ul>
        ${findings.map(
          (one) => html`<li>
            ${one.place && html`<code>${one.place}</code>${": "}`}${one.reason}. ${one.remedy}
          </li>`,
        )}
      </ul>`
    }
  </div>`;
}
