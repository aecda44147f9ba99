/** What a subscription asks for: in words, and in a form. Pure. */

/** @typedef {import("./shapes.js").Subscription} Subscription */
/** @typedef {"events" | "stacks" | "resources" | "types" | "points" | "tags"} Filter */

/** Filter -> its label, what it is on, and an example. @type {readonly [Filter, string, string, string][]} */
export const FILTERS = [
  ["events", "Events", "types of events", "headgate.hook.*"],
  ["stacks", "Stacks", "names of stacks", "shop-*"],
  ["tags", "Tags", "tags of stacks", "prod"],
  ["resources", "Resources", "names of resources, or paths", "web/0/*"],
  ["types", "Types", "types of resources", "OS::Nova::*"],
  ["points", "Points", "points of hooks", "pre-create"],
];

/** What it asks for, as short texts. @param {Subscription} one */
export function wanted(one) {
  const said = FILTERS.flatMap(([filter, label]) => {
    const globs = one[filter];
    return globs.length > 0 ? [{ label: label.toLowerCase(), globs: globs.join(", ") }] : [];
  });
  if (said.length === 0) said.push({ label: "everything", globs: "" });
  if (!one.nested) said.push({ label: "nothing of stacks inside", globs: "" });
  if (!one.ordered) said.push({ label: "in any order", globs: "" });
  return said;
}

/**
 * A target where many are shown, without the account and the query, which may hold secrets.
 * @param {string} target
 */
export function shownTarget(target) {
  return target.replace(/^([a-z]+:\/\/)[^/?#]*@/i, "$1").replace(/\?.*$/s, "?…");
}

/** Globs with commas, blanks or new lines between them. @param {string} text */
export function globs(text) {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))];
}

/**
 * What a form sends. @param {FormData} form
 * @returns {Record<string, unknown>}
 */
export function said(form) {
  const lists = FILTERS.map(([filter]) => [filter, globs(String(form.get(filter) ?? ""))]);
  return {
    target: String(form.get("target") ?? "").trim(),
    ...Object.fromEntries(lists),
    nested: form.has("nested"),
    ordered: form.has("ordered"),
  };
}

/**
 * What is wrong with each field, and what is wrong besides. A place such as `events[0]` is of `events`.
 * @param {readonly {place: string, reason: string, remedy: string}[]} findings
 * @param {readonly string[]} fields
 * @returns {{of: Record<string, string>, rest: typeof findings}}
 */
export function byField(findings, fields) {
  /** @type {Record<string, string>} */
  const of = {};
  const rest = [];
  for (const one of findings) {
    const field = one.place.split(/[.[]/)[0] ?? "";
    const words = [one.place === field ? "" : `${one.place}: `, one.reason, ". ", one.remedy];
    if (fields.includes(field))
      of[field] = [of[field], words.join("").trim()].filter(Boolean).join(" ");
    else rest.push(one);
  }
  return { of, rest };
}
