/** Display of an error: place, reason and remedy. */

import { Problem } from "../api/client.js";
import { html } from "../vendor/preact.js";
import { formatDuration } from "./ago.js";
import { withCode } from "./code_text.js";

/** @param {unknown} error @returns {Problem} */
export function asProblem(error) {
  if (error instanceof Problem) return error;
  const message = error instanceof Error ? error.message : String(error);
  const remedy = "This is an error in the page. Reload it; nothing on the server is affected.";
  return new Problem({ type: "PageError", message, remedy });
}

/**
 * A link to the page about the type of an error, in a tab of its own, because forms have drafts.
 * @param {{problem: Problem}} props
 */
export function HelpLink({ problem }) {
  // "javascript:" and other schemes are no pages.
  if (!/^https?:\/\//.test(problem.help)) return null;
  return html`<a href=${problem.help} target="_blank" rel="noopener">About ${problem.type}</a>`;
}

/**
 * The link of a form that shows an error beside its fields, and not in a box.
 * @param {{problem: Problem}} props
 */
export function FieldErrorHelp({ problem }) {
  return problem.help && html`<p><${HelpLink} problem=${problem} /></p>`;
}

/** @param {{error: unknown}} props */
export function ProblemBox({ error }) {
  if (!error) return null;
  const problem = asProblem(error);
  const findings = problem.findings.length > 1 ? problem.findings : [];
  const only = findings.length === 0 ? problem.findings[0] : undefined;
  const { place, remedy } = only ?? problem;
  const reason = only?.reason ?? problem.message;
  return html`<div class="problem" role="alert">
    <p class="reason">
      ${place && !findings.length && html`<code>${place}</code>${": "}`}${withCode(reason)}
    </p>
    ${remedy && !findings.length && html`<p>${withCode(remedy)}</p>`}
    ${problem.wait > 0 && html`<p>Try again in ${formatDuration(problem.wait)}.</p>`}
    ${
      findings.length > 0 &&
      html`<ul>
        ${findings.map(
          (finding) => html`<li>
            ${finding.place && html`<code>${finding.place}</code>${": "}`}${withCode(finding.reason)}. ${withCode(finding.remedy)}
          </li>`,
        )}
      </ul>`
    }
    <${FieldErrorHelp} problem=${problem} />
  </div>`;
}
