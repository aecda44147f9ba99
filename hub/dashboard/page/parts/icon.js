/** Icons. Each has its own shape, so that no information depends on color alone. */

import { html } from "../vendor/preact.js";

/** SVG paths in a 16 × 16 view box. @type {Record<string, string>} */
export const SHAPES = {
  gate: "M2 2h3v12H2zM11 2h3v12h-3zM6 5h4v6H6z",
  waiting: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zm0 2a4 4 0 1 1 0 8 4 4 0 0 1 0-8z",
  ready: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zm0 2v8a4 4 0 0 1 0-8z",
  running: "M4 2.5 13 8l-9 5.5z",
  parked: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zm-.9 2.5h1.8V7.6l2.3 1.6-1 1.5-3.1-2.2z",
  done: "M6.4 12.6 2 8.2l1.6-1.6 2.8 2.8 6-6L14 5z",
  failed: "M3.4 2 8 6.6 12.6 2 14 3.4 9.4 8l4.6 4.6-1.4 1.4L8 9.4 3.4 14 2 12.6 6.6 8 2 3.4z",
  stopped: "M3 3h10v10H3z",
  dropped: "M2 7h12v2H2z",
  close: "M3.4 2 8 6.6 12.6 2 14 3.4 9.4 8l4.6 4.6-1.4 1.4L8 9.4 3.4 14 2 12.6 6.6 8 2 3.4z",
  live: "M8 3a5 5 0 1 0 0 10A5 5 0 0 0 8 3z",
  broken: "M8 1 15.5 14.5H.5zM7.2 6v4.2h1.6V6zm0 5.3v1.6h1.6v-1.6z",
  light:
    "M8 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM7.3 0h1.4v2.6H7.3zm0 13.4h1.4V16H7.3zM0 7.3h2.6v1.4H0zm13.4 0H16v1.4h-2.6z",
  dark: "M9.5 1.5a6.6 6.6 0 1 0 5 9A5.6 5.6 0 0 1 9.500 1.500z",
  copy: "M2 1h8v2H4v8H2zM6 5h8v10H6zm2 2v6h4V7z",
  search:
    "M7 1a6 6 0 1 0 3.6 10.8l3.3 3.3 1.2-1.2-3.3-3.3A6 6 0 0 0 7 1zm0 2a4 4 0 1 1 0 8 4 4 0 0 1 0-8z",
};

/**
 * An icon of the size of the text around it, unless a style says otherwise.
 * label: text alternative; without it the icon is decorative.
 * @param {{name: string, label?: string}} props
 */
export function Icon({ name, label }) {
  const attributes = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  return html`<svg viewBox="0 0 16 16" width="1em" height="1em" fill="currentColor" ...${attributes}>
    <path d=${SHAPES[name] ?? SHAPES.waiting} fill-rule="evenodd" />
  </svg>`;
}
