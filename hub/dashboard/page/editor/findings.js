/** The list of errors; each one links to its line. */

import { html } from "../vendor/preact.js";

/**
 * @typedef {{finding: import("./locations.js").Finding, spot: import("./locations.js").Spot}} Found
 * @param {{findings: Found[], show: (spot: import("./locations.js").Spot) => void}} props
 */
export function Findings({ findings, show }) {
  return html`<section class="edit-findings" aria-label="Errors" aria-live="polite">
    ${
      findings.length === 0
        ? null
        : html`<ul>
            ${findings.map(
              (
                { finding, spot },
                index,
              ) => html`<li key=${`${index} ${finding.place} ${finding.reason}`}>
                <button class="plain" onClick=${() => show(spot)}>
                  <span class="where">${where(spot)}</span>
                  <span class="breaks">
                    ${finding.place && html`<code>${finding.place}</code>${": "}`}${finding.reason}
                    ${finding.remedy && html` <span class="remedy">${finding.remedy}</span>`}
                  </span>
                </button>
              </li>`,
            )}
          </ul>`
    }
  </section>`;
}

/** @param {import("./locations.js").Spot} spot */
function where({ text, line }) {
  const named = text.startsWith("files/") ? text.slice("files/".length) : text;
  return line > 0 ? `${named} ${line}` : named;
}
