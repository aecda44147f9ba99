/** Builds and sends an answer, and stores the result in the draft. */

import { call, Problem } from "../api/client.js";
import { session } from "../api/session.js";
import { notify } from "../app/notices.js";
import { change, resetDraft } from "./drafts.js";
import { assignFindings, pathsOf, readForm } from "./form_values.js";
import { decisionText, subject } from "./hook_text.js";
import { parsePatch } from "./patch.js";
import { cachedHook, readHook, storeHook } from "./waiting.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../api/documents.js").Decision} Decision */
/** @typedef {import("./form.js").Control} Control */
/** @typedef {import("../vendor/preact.js").Signal<import("./drafts.js").Draft>} DraftSignal */
/** @typedef {{project: string, hook: Hook, draft: DraftSignal, form: Control | null}} Sending */

/** Error types of answers that came too late. */
const LATE_ERRORS = new Set([
  "HookAlreadyAnswered",
  "HookExpired",
  "HookSuperseded",
  "StackStopped",
]);
/** Decisions that resume the node and include the requested data. */
const CONTINUES = new Set(["continue", "step", "run", "patch"]);
/** The part of a draft without errors. */
const NO_ERRORS = { errors: {}, refusal: null, problem: null };
const DURATION = /^\d{1,6}\s*[smhd]$/;

/** Sends a decision with the draft. @param {Sending} sending @param {Decision} decision */
export async function decide(sending, decision) {
  const { project, hook, draft } = sending;
  const { body, errors } = bodyOf(sending, decision);
  if (Object.keys(errors).length > 0) return change(draft, { ...NO_ERRORS, errors });
  await sendWithDraft(sending, async () => {
    const now = await call("POST", project, `/hooks/${hook.id}/signal`, body);
    storeHook(now);
    resetDraft(draft, now, resultText(now, decision));
  });
}

/** Hands the hook over to another user or role. @param {Sending} sending */
export async function handOver(sending) {
  const { project, hook, draft } = sending;
  const { to, note } = draft.value;
  const name = to.name.trim();
  if (!name)
    return change(draft, { ...NO_ERRORS, errors: { to: "Enter the name of a user or role." } });
  await sendWithDraft(sending, async () => {
    const body = { to: `${to.kind}:${name}`, note };
    const now = await call("POST", project, `/hooks/${hook.id}/hand-over`, body);
    storeHook(now);
    const kept = draft.value;
    resetDraft(draft, now, `Handed over to ${to.kind === "role" ? "the role " : ""}${name}.`);
    change(draft, { reason: kept.reason, data: kept.data });
  });
}

/**
 * @param {Sending} sending @param {Decision} decision
 * @returns {{body: Record<string, unknown>, errors: Record<string, string>}}
 */
function bodyOf({ hook, draft, form }, decision) {
  const { reason, how, extend, ignoreFor, seen, data, patch } = draft.value;
  /** @type {Record<string, unknown>} */
  const body = { decision, digest: seen.digest };
  /** @type {Record<string, string>} */
  const errors = {};
  if (reason.trim()) body.reason = reason.trim();
  if (decision === "step" && how !== "over") body.how = how;
  if (decision === "progress" && extend.trim()) {
    body.extend = extend.trim();
    if (!DURATION.test(extend.trim()))
      errors.extend = "Enter a duration, for example 30m, 2h or 1d.";
  }
  if (decision === "ignore") {
    body.data = { for: ignoreFor.trim() };
    if (!DURATION.test(ignoreFor.trim()))
      errors["data.for"] = "Enter a duration, for example 30m, 2h or 1d.";
  }
  if (form && CONTINUES.has(decision)) {
    const read = readForm(form, data);
    body.data = read.value;
    for (const [path, why] of Object.entries(read.errors)) errors[serverPlace(path)] = why;
  }
  if (decision === "patch") {
    const read = parsePatch(hook, patch);
    body.properties = read.properties;
    Object.assign(errors, read.errors);
  }
  return { body, errors };
}

/** The server's place of a control. @param {string} path */
export function serverPlace(path) {
  return path ? `data.${path}` : "data";
}

/**
 * Sends and stores errors in the draft, whose content stays.
 * @param {Sending} sending @param {() => Promise<void>} send
 */
async function sendWithDraft(sending, send) {
  const { draft } = sending;
  const { seen } = draft.value;
  change(draft, { ...NO_ERRORS, busy: true, result: "" });
  try {
    await send();
  } catch (error) {
    await storeError(sending, seen, error);
  } finally {
    change(draft, { busy: false });
  }
}

/** @param {Sending} sending @param {Hook} seen of the answer @param {unknown} error */
async function storeError({ project, hook, draft, form }, seen, error) {
  if (!(error instanceof Problem)) return change(draft, { problem: error });
  if (error.status === 401)
    return change(draft, { result: "Not sent: your session had ended. Try again." });
  if (LATE_ERRORS.has(error.type)) change(draft, { late: true });
  if (LATE_ERRORS.has(error.type) || error.type === "DigestChanged" || error.status === 403)
    await readHook(project, hook.id).catch(() => {});
  if (LATE_ERRORS.has(error.type)) return change(draft, { problem: error });
  // The differences are shown because the hook was fetched again, or the user has accepted them.
  const now = cachedHook(hook.id);
  if (error.type === "DigestChanged" && now && now.digest !== seen.digest) return;
  const properties = Object.keys(draft.value.patch).map((name) => `properties.${name}`);
  const places = [
    ...(form ? pathsOf(form).map(serverPlace) : []),
    ...properties,
    "extend",
    "data.for",
    "reason",
    "to",
  ];
  const findings = error.findings.length
    ? error.findings
    : [{ place: error.place, reason: error.message, remedy: error.remedy }];
  const { errors, rest } = assignFindings(places.filter(Boolean), findings);
  change(draft, { errors, ...(rest.length > 0 ? { problem: error } : { refusal: error }) });
}

/** The result of a decision as text. @param {Hook} now @param {Decision} decision */
function resultText(now, decision) {
  const userName = session.peek()?.name;
  if (now.state === "waiting") {
    if (decision === "progress") return "Deadline extended.";
    const { given, needed } = now.approvals;
    return `Approval recorded: ${given} of ${needed}.`;
  }
  if (now.decided_by !== userName) return `${now.decided_by} already gave the same answer.`;
  notify(`${subject(now)}: you ${decisionText(now.decision)}`, "good");
  return "";
}
