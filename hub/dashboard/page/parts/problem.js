/** What went wrong: the place, the reason, the remedy. */

import { Problem } from "../api/client.js";
import { html } from "../vendor/preact.js";
import { span } from "./ago.js";

/** @param {unknown} error @returns {Problem} */
export function asProblem(error) {
  if (error instanceof Problem) return error;
  const message = error instanceof Error ? error.message : String(error);
  const remedy = "This is a fault of the page. Load it anew; what the server has is safe.";
  return new Problem({ type: "PageError", message, remedy });
}

/** @param {{error: unknown}} props */
export function ProblemBox({ error }) {
  if (!error) return null;
  const said = asProblem(error);
  const findings = said.findings.length > 1 ? said.findings : [];
  return html`<div class="problem" role="alert">
    <p class="reason">
      ${said.place && !findings.length && html`<code>${said.place}</code>${": "}`}${said.message}
    </p>
    ${said.remedy && html`<p>${said.remedy}</p>`}
    ${said.wait > 0 && html`<p>Try again in ${span(said.wait)}.</p>`}
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
