/** What is wrong, in a list: each leads to its line. */

import { html } from "../vendor/preact.js";

/**
 * @typedef {{finding: import("./places.js").Finding, spot: import("./places.js").Spot}} Found
 * @param {{findings: Found[], show: (spot: import("./places.js").Spot) => void}} props
 */
export function Findings({ findings, show }) {
  return html`<section class="edit-findings" aria-label="What is wrong" aria-live="polite">
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

/** @param {import("./places.js").Spot} spot */
function where({ text, line }) {
  const named = text.startsWith("files/") ? text.slice("files/".length) : text;
  return line > 0 ? `${named} ${line}` : named;
}
