// The page's colours for the canvas, which cannot use CSS custom properties.

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
  const found = {};
  for (const name of NAMES) {
    probe.style.color = `var(--${name})`;
    found[name] = getComputedStyle(probe).color;
  }
  probe.style.fontFamily = "var(--code-font)";
  found.font = getComputedStyle(probe).fontFamily;
  probe.remove();
  return found;
}

/**
 * @param {() => void} call when the colours may have changed
 * @returns {() => void} stops watching
 */
export function onTheme(call) {
  const wanted = matchMedia("(prefers-color-scheme: dark)");
  const watch = new MutationObserver(call);
  watch.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  wanted.addEventListener("change", call);
  return () => {
    watch.disconnect();
    wanted.removeEventListener("change", call);
  };
}
