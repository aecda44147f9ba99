/** Keeps the draft of the editor in the window's storage while it is edited. */

import { now } from "../api/clock.js";
import { session } from "../api/session.js";
import { useEffect, useMemo } from "../vendor/preact.js";
import { draftStore, removeStoredDraft } from "./stored_drafts.js";

/** Milliseconds between a change and its storage. */
const SOON = 500;

/**
 * Returns `store`, which stores the draft at once and returns whether a reload loses nothing, and
 * `remove`. enabled: whether the draft may be stored now.
 * @param {{project: string, draft: import("./draft.js").Draft, enabled: () => boolean,
 *   stack: import("../vendor/preact.js").Signal<import("./loading.js").Loaded | null>}} what
 */
export function useDraftKeeper({ project, draft, stack, enabled }) {
  const keeper = useMemo(() => {
    const versions = draftStore(project, draft.initial.peek());
    const id = stack.peek()?.id ?? "";
    const remove = () => removeStoredDraft(project, id);
    const store = () => {
      if (!enabled() || !draft.changed.peek()) return true;
      const written = {
        name: draft.name.peek(),
        texts: draft.texts.peek(),
        options: draft.options.peek(),
      };
      const at = new Date(now.peek()).toISOString();
      return versions.store(session.peek()?.name ?? "", at, written, stack.peek());
    };
    return { store, remove };
  }, []);
  const [name, texts, options] = [draft.name.value, draft.texts.value, draft.options.value];
  const changed = draft.changed.value;
  useEffect(() => {
    const timer = setTimeout(() => {
      if (!changed && enabled()) keeper.remove();
      else keeper.store();
    }, SOON);
    return () => clearTimeout(timer);
  }, [name, texts, options, changed]);
  return keeper;
}
