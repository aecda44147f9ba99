/** Do something again when asked, but not again while it is done, and not for each of many askings. */

/** How long further askings are waited for, in milliseconds. */
const SOON = 100;
/** What takes long is not done all the time. */
const AT_MOST = 5000;

/**
 * A function that has `work` done: at once the first time; later once for what is asked within a
 * short time, which is longer where the work is.
 * @param {() => Promise<void>} work which never throws
 */
export function repeated(work) {
  let busy = false;
  let asked = false;
  let pause = 0;
  async function run() {
    asked = false;
    const began = performance.now();
    await work();
    pause = Math.min(AT_MOST, Math.max(SOON, 2 * (performance.now() - began)));
    if (asked) setTimeout(run, pause);
    else busy = false;
  }
  return () => {
    asked = true;
    if (busy) return;
    busy = true;
    setTimeout(run, pause);
  };
}
