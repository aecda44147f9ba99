// The page's colors for the canvas, which cannot use CSS custom properties.

/** @typedef {Record<string, string>} Palette */

const NAMES = [
  "ground",
  "raised",
  "sunken",
  "line",
  "line-strong",
  "text",
  "muted",
  "accent",
  "focus",
  "gate-ground",
  "gate",
  "waiting",
  "ready",
  "running",
  "parked",
  "done",
  "failed",
  "stopped",
  "dropped",
];

/**
 * @param {HTMLElement} host
 * @returns {Palette}
 */
export function paletteOf(host) {
  const probe = document.createElement("span");
  probe.hidden = true;
  host.append(probe);
  /** @type {Palette} */
  const result = {};
  for (const name of NAMES) {
    probe.style.color = `var(--${name})`;
    result[name] = getComputedStyle(probe).color;
  }
  probe.style.fontFamily = "var(--code-font)";
  result.font = getComputedStyle(probe).fontFamily;
  probe.remove();
  return result;
}

/**
 * @param {() => void} call when the colors may have changed
 * @returns {() => void} stops watching
 */
export function onTheme(call) {
  const darkTheme = matchMedia("(prefers-color-scheme: dark)");
  const watch = new MutationObserver(call);
  watch.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  darkTheme.addEventListener("change", call);
  return () => {
    watch.disconnect();
    darkTheme.removeEventListener("change", call);
  };
}
