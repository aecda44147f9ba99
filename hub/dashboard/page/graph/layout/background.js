// Layouts of large views in a worker, so that the page responds meanwhile.
import { measure, outlineOf } from "./scene.js";

/**
 * @typedef {import("../fold/view.js").View} View
 * @typedef {import("./scene.js").Sized} Sized
 *
 * @typedef {object} Job
 * @property {View} view
 * @property {(sized: Sized) => void} done
 */

/** Jobs that the worker has not finished, by number. @type {Map<number, Job>} */
const jobs = new Map();
let lastJob = 0;
/** null: not started. @type {Worker | null} */
let worker = null;
/** Whether this browser starts no worker: layouts are computed in the page. */
let unavailable = false;

/**
 * @param {View} view
 * @returns {Promise<Sized>}
 */
export function measureInBackground(view) {
  return new Promise((done) => {
    worker ??= unavailable ? null : start();
    if (!worker) return done(measure(view));
    lastJob += 1;
    jobs.set(lastJob, { view, done });
    worker.postMessage({ job: lastJob, outline: outlineOf(view) });
  });
}

/** @returns {Worker | null} */
function start() {
  try {
    const started = new Worker(scriptUrl(), { type: "module", name: "layout" });
    started.addEventListener("message", ({ data: { job, sized } }) => {
      jobs.get(job)?.done(sized);
      jobs.delete(job);
    });
    started.addEventListener("error", (event) => {
      event.preventDefault();
      giveUp();
    });
    return started;
  } catch {
    giveUp();
    return null;
  }
}

/** Computes the open jobs here, and all later ones. */
function giveUp() {
  worker?.terminate();
  worker = null;
  unavailable = true;
  for (const { view, done } of jobs.values()) done(measure(view));
  jobs.clear();
}

/** The policy of the page accepts no plain text as the address of a script. */
function scriptUrl() {
  const url = new URL("./worker.js", import.meta.url).href;
  /** @type {any} */
  const types = Reflect.get(globalThis, "trustedTypes");
  if (!types) return url;
  return types.createPolicy("headgate", { createScriptURL: () => url }).createScriptURL(url);
}
