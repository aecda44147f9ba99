/** The filters of a subscription, as text and as form fields. Pure. */

/** @typedef {import("./types.js").Subscription} Subscription */
/** @typedef {import("./types.js").QuietHours} QuietHours */
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
  const quiet = subscription.quiet_hours;
  if (quiet) texts.push({ label: "quiet hours", globs: quietText(quiet) });
  const { digest } = subscription;
  if (digest) texts.push({ label: "digest", globs: digestText(digest) });
  return texts;
}

/** For example "22:00 to 07:00 Europe/Berlin, mon, sun". @param {QuietHours} quiet */
function quietText(quiet) {
  const days = quiet.days.length < 7 ? `, ${quiet.days.join(", ")}` : "";
  return `${quiet.from} to ${quiet.to} ${quiet.timezone}${days}`;
}

/** For example "daily at 08:00 Europe/Berlin". @param {import("./types.js").Digest} digest */
function digestText(digest) {
  if (digest.every === "daily") return `daily at ${digest.at} ${digest.timezone}`;
  return digest.every === "1h" ? "every hour" : "every 15 minutes";
}

/** Channels with quiet hours and digests. */
export const QUIET_CHANNELS = new Set(["apprise", "email", "slack", "teams"]);

/**
 * The quiet hours in the form, null without any, and nothing if the channel has none. They end the order.
 * @param {FormData} form @param {string} channel
 */
function quietHours(form, channel) {
  if (!QUIET_CHANNELS.has(channel)) return {};
  /** @param {string} name */
  const text = (name) => String(form.get(name) ?? "").trim();
  const [from, to, timezone] = [text("quiet-from"), text("quiet-to"), text("quiet-timezone")];
  if (!from && !to) return { quiet_hours: null };
  const days = globs(text("quiet-days"));
  const quiet = { from, to, ...(timezone && { timezone }), ...(days.length > 0 && { days }) };
  return { quiet_hours: quiet, ordered: false };
}

/**
 * The digest in the form, null without one, and nothing if the channel has none. It ends the order.
 * @param {FormData} form @param {string} channel
 */
function digestOf(form, channel) {
  if (!QUIET_CHANNELS.has(channel)) return {};
  /** @param {string} name */
  const text = (name) => String(form.get(name) ?? "").trim();
  const every = text("digest");
  if (!every) return { digest: null };
  if (every !== "daily") return { digest: every, ordered: false };
  const [at, timezone] = [text("digest-at"), text("digest-timezone")];
  return { digest: { every, ...(at && { at }), ...(timezone && { timezone }) }, ordered: false };
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
 * @param {string} channel
 * @returns {Record<string, unknown>}
 */
export function requestBody(form, channel) {
  const lists = FILTERS.map(([filter]) => [filter, globs(String(form.get(filter) ?? ""))]);
  return {
    target: String(form.get("target") ?? "").trim(),
    ...Object.fromEntries(lists),
    nested: form.has("nested"),
    ordered: form.has("ordered"),
    ...quietHours(form, channel),
    ...digestOf(form, channel),
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
