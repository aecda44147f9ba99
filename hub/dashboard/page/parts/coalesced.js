/** Coalesces coalesced requests for the same work. */

/** Minimum pause between two runs, in milliseconds. */
const SOON = 100;
/** Maximum pause, for slow work. */
const AT_MOST = 5000;

/**
 * Returns a function that schedules `work`: immediately the first time, later once per pause, which
 * grows with the duration of the work.
 * @param {() => Promise<void>} work must not throw
 */
export function coalesced(work) {
  let busy = false;
  let pending = false;
  let pause = 0;
  async function run() {
    pending = false;
    const began = performance.now();
    await work();
    pause = Math.min(AT_MOST, Math.max(SOON, 2 * (performance.now() - began)));
    if (pending) setTimeout(run, pause);
    else busy = false;
  }
  return () => {
    pending = true;
    if (busy) return;
    busy = true;
    setTimeout(run, pause);
  };
}
