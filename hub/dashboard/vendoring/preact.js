// Components and live values: what every page is made of.
import { h } from "preact";
import htm from "htm";

export * from "preact";
export * from "preact/hooks";
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
export const html = htm.bind(h);
