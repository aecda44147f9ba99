/** The filters of a subscription, as text and as form fields. Pure. */

/** @typedef {import("./types.js").Subscription} Subscription */
/** @typedef {"events" | "stacks" | "resources" | "types" | "points" | "tags"} Filter */

/**
 * Filter, label, what it matches, and an example.
 * @type {readonly [Filter, string, string, string][]}
 */
export const FILTERS = [
  ["events", "Events", "Event types", "headgate.hook.*"],
  ["stacks", "Stacks", "Stack names", "shop-*"],
  ["tags", "Tags", "Stack tags", "prod"],
  ["resources", "Resources", "Resource names or paths", "web/0/*"],
  ["types", "Types", "Resource types", "OS::Nova::*"],
  ["points", "Points", "Hook points", "pre-create"],
];

/** The filters as short texts. @param {Subscription} subscription */
export function filterTexts(subscription) {
  const texts = FILTERS.flatMap(([filter, label]) => {
    const globs = subscription[filter];
    return globs.length > 0 ? [{ label: label.toLowerCase(), globs: globs.join(", ") }] : [];
  });
  if (texts.length === 0) texts.push({ label: "all events", globs: "" });
  if (!subscription.nested) texts.push({ label: "without nested stacks", globs: "" });
  if (!subscription.ordered) texts.push({ label: "unordered", globs: "" });
  return texts;
}

/**
 * A target for display, without user info and query, which may contain secrets.
 * @param {string} target
 */
export function displayTarget(target) {
  return target.replace(/^([a-z]+:\/\/)[^/?#]*@/i, "$1").replace(/\?.*$/s, "?…");
}

/** Splits patterns at commas, spaces and line breaks. @param {string} text */
function globs(text) {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))];
}

/**
 * The request body of the form.
 * @param {FormData} form
 * @returns {Record<string, unknown>}
 */
export function requestBody(form) {
  const lists = FILTERS.map(([filter]) => [filter, globs(String(form.get(filter) ?? ""))]);
  return {
    target: String(form.get("target") ?? "").trim(),
    ...Object.fromEntries(lists),
    nested: form.has("nested"),
    ordered: form.has("ordered"),
  };
}

/**
 * Assigns findings to fields; a place such as `events[0]` belongs to `events`.
 * @param {readonly {place: string, reason: string, remedy: string}[]} findings
 * @param {readonly string[]} fields
 * @returns {{byField: Record<string, string>, rest: typeof findings}}
 */
export function findingsByField(findings, fields) {
  /** @type {Record<string, string>} */
  const byField = {};
  const rest = [];
  for (const finding of findings) {
    const field = finding.place.split(/[.[]/)[0] ?? "";
    const words = [
      finding.place === field ? "" : `${finding.place}: `,
      finding.reason,
      ". ",
      finding.remedy,
    ];
    if (fields.includes(field))
      byField[field] = [byField[field], words.join("").trim()].filter(Boolean).join(" ");
    else rest.push(finding);
  }
  return { byField, rest };
}
