/** An answer is put together, sent, and what comes back is kept with the draft. */

import { call, Problem } from "../api/client.js";
import { session } from "../api/session.js";
import { notify } from "../app/notices.js";
import { change, startAnew } from "./drafts.js";
import { patchIn } from "./patch.js";
import { pathsOf, placed, readForm } from "./reading.js";
import { hookOf, learn, readHook } from "./waiting.js";
import { did, subject } from "./words.js";

/** @typedef {import("../api/documents.js").Hook} Hook */
/** @typedef {import("../api/documents.js").Decision} Decision */
/** @typedef {import("./form.js").Control} Control */
/** @typedef {import("../vendor/preact.js").Signal<import("./drafts.js").Draft>} DraftSignal */
/** @typedef {{project: string, hook: Hook, draft: DraftSignal, form: Control | null}} Sending */

/** What is said of who was late. */
const LATE = new Set(["HookAlreadyAnswered", "HookExpired", "HookSuperseded", "StackStopped"]);
/** Decisions that let it go on, and bring what the rule asks for. */
const GOES_ON = new Set(["continue", "step", "run", "patch"]);
const SPAN = /^\d{1,6}\s*[smhd]$/;

/** Send a decision with what was written. @param {Sending} sending @param {Decision} decision */
export async function decide(sending, decision) {
  const { project, hook, draft } = sending;
  const { body, wrongs } = bodyOf(sending, decision);
  if (Object.keys(wrongs).length > 0) return change(draft, { wrongs, problem: null });
  await sent(sending, async () => {
    const now = await call("POST", project, `/hooks/${hook.id}/signal`, body);
    learn(now);
    startAnew(draft, now, told(now, decision));
  });
}

/** Let somebody else answer. @param {Sending} sending */
export async function handOver(sending) {
  const { project, hook, draft } = sending;
  const { to, note } = draft.value;
  const name = to.name.trim();
  if (!name) return change(draft, { wrongs: { to: "Name somebody, or a role." }, problem: null });
  await sent(sending, async () => {
    const body = { to: `${to.kind}:${name}`, note };
    const now = await call("POST", project, `/hooks/${hook.id}/hand-over`, body);
    learn(now);
    const kept = draft.value;
    startAnew(draft, now, `Handed over to ${to.kind === "role" ? "the role " : ""}${name}.`);
    change(draft, { reason: kept.reason, data: kept.data });
  });
}

/**
 * @param {Sending} sending @param {Decision} decision
 * @returns {{body: Record<string, unknown>, wrongs: Record<string, string>}}
 */
function bodyOf({ hook, draft, form }, decision) {
  const { reason, how, extend, seen, data, patch } = draft.value;
  /** @type {Record<string, unknown>} */
  const body = { decision, digest: seen.digest };
  /** @type {Record<string, string>} */
  const wrongs = {};
  if (reason.trim()) body.reason = reason.trim();
  if (decision === "step" && how !== "over") body.how = how;
  if (decision === "progress" && extend.trim()) {
    body.extend = extend.trim();
    if (!SPAN.test(extend.trim())) wrongs.extend = "Write a time such as 30m, 2h or 1d.";
  }
  if (form && GOES_ON.has(decision)) {
    const read = readForm(form, data);
    body.data = read.value;
    for (const [path, why] of Object.entries(read.wrongs)) wrongs[placeOf(path)] = why;
  }
  if (decision === "patch") {
    const read = patchIn(hook, patch);
    body.properties = read.properties;
    Object.assign(wrongs, read.wrongs);
  }
  return { body, wrongs };
}

/** The server's name for the place of a control. @param {string} path */
export function placeOf(path) {
  return path ? `data.${path}` : "data";
}

/**
 * Send, and keep what goes wrong; what was written stays.
 * @param {Sending} sending @param {() => Promise<void>} send
 */
async function sent(sending, send) {
  const { draft } = sending;
  change(draft, { busy: true, wrongs: {}, problem: null, said: "" });
  try {
    await send();
  } catch (error) {
    await keep(sending, error);
  } finally {
    change(draft, { busy: false });
  }
}

/** @param {Sending} sending @param {unknown} error */
async function keep({ project, hook, draft, form }, error) {
  if (!(error instanceof Problem)) return change(draft, { problem: error });
  if (error.status === 401)
    return change(draft, { said: "Nothing was sent: the session had ended. Press it again." });
  if (LATE.has(error.type)) change(draft, { late: true });
  if (LATE.has(error.type) || error.type === "DigestChanged" || error.status === 403)
    await readHook(project, hook.id).catch(() => {});
  if (LATE.has(error.type)) return change(draft, { problem: error });
  // What differs is shown where it was read anew.
  const now = hookOf(hook.id);
  if (error.type === "DigestChanged" && now && now.digest !== draft.value.seen.digest) return;
  const properties = Object.keys(draft.value.patch).map((name) => `properties.${name}`);
  const places = [
    ...(form ? pathsOf(form).map(placeOf) : []),
    ...properties,
    "extend",
    "reason",
    "to",
  ];
  const findings = error.findings.length
    ? error.findings
    : [{ place: error.place, reason: error.message, remedy: error.remedy }];
  const { wrongs, rest } = placed(places.filter(Boolean), findings);
  change(draft, { wrongs, problem: rest.length > 0 ? error : null });
}

/** What came of a decision. @param {Hook} now @param {Decision} decision */
function told(now, decision) {
  const me = session.peek()?.name;
  if (now.state === "waiting") {
    if (decision === "progress") return "It waits longer now.";
    const { given, needed } = now.approvals;
    return `Your approval counts: ${given} of ${needed} given.`;
  }
  if (now.decided_by !== me)
    return `${now.decided_by} said the same before you; there is nothing left to do.`;
  notify(`${subject(now)}: you ${did(now.decision)}`, "good");
  return "";
}
