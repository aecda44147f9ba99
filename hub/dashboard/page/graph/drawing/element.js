// Elements created directly: there are many, and most never change.
import { SHAPES } from "../../parts/icon.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string} className
 * @returns {HTMLElementTagNameMap[T]}
 */
export function element(tag, className) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (made instanceof HTMLButtonElement) made.type = "button";
  return made;
}

/**
 * @param {string} name
 * @returns {SVGSVGElement}
 */
export function icon(name) {
  const made = document.createElementNS(SVG, "svg");
  made.setAttribute("viewBox", "0 0 16 16");
  made.setAttribute("width", "1em");
  made.setAttribute("height", "1em");
  made.setAttribute("class", "graph-glyph");
  made.setAttribute("fill", "currentColor");
  made.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("fill-rule", "evenodd");
  made.append(path);
  put(made, name);
  return made;
}

/**
 * @param {SVGSVGElement} on an icon
 * @param {string} name of the new shape
 */
export function put(on, name) {
  const shape = SHAPES[name] ?? "";
  const path = on.firstElementChild;
  if (path && path.getAttribute("d") !== shape) path.setAttribute("d", shape);
}
