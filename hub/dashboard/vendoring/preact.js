// Components and reactive values, used by every page.

import htm from "htm";
import { h } from "preact";

export {
  batch,
  computed,
  effect,
  signal,
  untracked,
  useComputed,
  useSignal,
  useSignalEffect,
} from "@preact/signals";
export * from "preact";
export * from "preact/hooks";
export const html = htm.bind(h);
