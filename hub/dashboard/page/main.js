/** Entry point of the dashboard. */

import { Frame } from "./app/frame.js";
import { showTheme } from "./app/theme.js";
import { html, render } from "./vendor/preact.js";

showTheme();
render(html`<${Frame} />`, /** @type {HTMLElement} */ (document.getElementById("app")));
