/** Notifications of the desktop about hooks that begin to wait while the page is not in front. */

import { followHidden } from "../api/live.js";
import { session } from "../api/session.js";
import { pointInWords, subject } from "../inbox/hook_text.js";
import { isForUser } from "../inbox/rights.js";
import { waiting } from "../inbox/waiting.js";
import { effect, html, signal } from "../vendor/preact.js";
import { notify } from "./notices.js";
import { href, navigate } from "./route.js";

/** @typedef {import("../api/documents.js").Hook} Hook */

/** Storage key of the user's choice. */
const KEY = "headgate.desktop";
const isSupported = "Notification" in window;

/** Whether the user wants notifications and the browser allows them. */
const enabled = signal(
  isSupported && localStorage.getItem(KEY) === "on" && Notification.permission === "granted",
);
effect(() => {
  followHidden.value = enabled.value;
});

/** Turns the notifications on and off. */
export function DesktopButton() {
  if (!isSupported) return null;
  async function toggle() {
    if (enabled.value) {
      localStorage.removeItem(KEY);
      enabled.value = false;
      return;
    }
    if ((await Notification.requestPermission()) !== "granted") {
      notify(
        "The browser does not allow notifications of this page. Allow them in its settings.",
        "bad",
      );
      return;
    }
    localStorage.setItem(KEY, "on");
    enabled.value = true;
  }
  return html`<button aria-pressed=${enabled.value} onClick=${toggle}
    title="Show a notification of the desktop when a hook waits for you and this page is not in front">
    Desktop notifications</button>`;
}

/** Notifies about new waiting hooks until the returned function is called. @param {string} project */
export function watchForDesktop(project) {
  /** Hooks seen before; null until the list is loaded. @type {Set<string> | null} */
  let known = null;
  return effect(() => {
    const hooks = waiting.value;
    if (hooks === null) return;
    const before = known;
    known = new Set([...(before ?? []), ...hooks.map((hook) => hook.id)]);
    if (before === null || !enabled.peek() || isInFront()) return;
    for (const hook of hooks)
      if (!before.has(hook.id) && isForUser(hook, session.peek())) show(project, hook);
  });
}

function isInFront() {
  return !document.hidden && document.hasFocus();
}

/** @param {string} project @param {Hook} hook */
function show(project, hook) {
  const title = `${subject(hook)} waits ${pointInWords(hook.point)}`;
  const body = `Stack ${hook.root_stack_name}, requested by ${hook.requested_by}`;
  // One for each hook, also if several windows are open.
  const shown = new Notification(title, { body, tag: hook.id });
  shown.onclick = () => {
    window.focus();
    navigate(href(project, "inbox", hook.id));
    shown.close();
  };
}
