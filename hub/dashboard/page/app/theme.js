/** Light and dark theme: follows the system until the user chooses one. */

import { Icon } from "../parts/icon.js";
import { html, signal } from "../vendor/preact.js";

const STORAGE_KEY = "headgate.theme";
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const theme = signal(localStorage.getItem(STORAGE_KEY) ?? (prefersDark.matches ? "dark" : "light"));

export function showTheme() {
  document.documentElement.dataset.theme = theme.value;
}

export function ThemeButton() {
  const other = theme.value === "dark" ? "light" : "dark";
  const label = `Switch to the ${other} theme`;
  const change = () => {
    theme.value = other;
    localStorage.setItem(STORAGE_KEY, other);
    showTheme();
  };
  return html`<button class="plain" onClick=${change} aria-label=${label} title=${label}>
    <${Icon} name=${other} />
  </button>`;
}
