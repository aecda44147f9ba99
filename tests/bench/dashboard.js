// The browser's part of the dashboard bench. Durations are in milliseconds.
const { html, render, signal } = await import("/page/vendor/preact.js");
const { Graph } = await import("/page/graph/graph.js");
const { graphModel } = await import("/page/graph/model.js");
const { sceneOf } = await import("/page/graph/layout/scene.js");
const { viewOf } = await import("/page/graph/fold/view.js");

const FRAMES = 90;
const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
const painted = async () => {
  await frame();
  await frame();
};
const place = document.getElementById("place");
const median = (values) => [...values].sort((one, other) => one - other)[values.length >> 1];

/** A half-finished change: layers of nodes, each after two of the layer before. */
function halfFinishedChange(count, layers) {
  let state = 7;
  const random = () => {
    state = (state * 1103515245 + 12345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
  const size = count / layers;
  const nodes = [];
  const edges = [];
  for (let id = 0; id < count; id++) {
    const layer = Math.floor(id / size);
    const name = `r${id}`;
    const isDone = id < count / 2;
    nodes.push({
      id, resource_name: name, path: name, type: `OS::Bench::T${layer % 4}`, operation: "create",
      direction: "forward", state: isDone ? "done" : "waiting", phase: isDone ? "post" : "pre",
      waiting_for: [], breakpoints: [], reason: null, inside: null,
    });
    for (let times = layer ? 2 : 0; times > 0; times--) {
      const target = Math.floor((id % size) + (random() - 0.5) * 0.1 * size);
      const to = Math.min(size - 1, Math.max(0, target));
      edges.push([(layer - 1) * size + to, id]);
    }
  }
  const traversal = { number: 1, action: "CREATE", state: "running" };
  return { nodes, edges, traversal, sequence: 1 };
}

const started = (id, sequence) => ({
  type: "headgate.resource.create.started", time: "2026-11-22T00:00:00Z", sequence,
  data: { traversal: 1, node: id, operation: "create", resource: { reason: "" } },
});

/** Frames a second, and the 95th percentile of the time between two, during a change. */
async function measureFrames(change) {
  const durations = [];
  await frame();
  let last = performance.now();
  for (let at = 0; at < FRAMES; at++) {
    change(at);
    await frame();
    const now = performance.now();
    durations.push(now - last);
    last = now;
  }
  durations.sort((one, other) => one - other);
  const total = durations.reduce((sum, one) => sum + one, 0);
  return { rate: (1000 * FRAMES) / total, p95: durations[Math.floor(0.95 * FRAMES)] };
}

const memory = () => {
  globalThis.gc?.();
  return performance.memory.usedJSHeapSize / 1e6;
};

/** fold: a value of the page's own menu. */
window.measureGraph = async (count, layers, fold) => {
  const text = JSON.stringify(halfFinishedChange(count, layers));
  const before = memory();
  const begin = performance.now();
  const model = graphModel(JSON.parse(text));
  const read = performance.now() - begin;
  const scenes = [];
  for (let times = 0; times < 3; times++) {
    const from = performance.now();
    sceneOf(viewOf(model.tree, fold, new Set()));
    scenes.push(performance.now() - from);
  }
  const from = performance.now();
  render(html`<${Graph} model=${model} selected=${signal(null)} />`, place);
  if (fold !== "auto") {
    const folds = place.querySelector("select");
    folds.value = fold;
    folds.dispatchEvent(new Event("change"));
  }
  const stage = place.querySelector(".graph-stage");
  do await painted();
  while (stage.hasAttribute("aria-busy"));
  const drawn = read + performance.now() - from;
  const wheel = (x, y) => stage.dispatchEvent(
    new WheelEvent("wheel", { deltaX: x, deltaY: y, cancelable: true, bubbles: true }));
  const pan = (at) => (at % 60 < 30 ? 14 : -14);
  // A graph opens readable; from afar, all of it is in the window.
  place.querySelector(".graph-zoom button:nth-child(2)").click();
  await painted();
  const zoomedOut = await measureFrames((at) => wheel(pan(at), pan(at) / 2));
  const larger = [...place.querySelectorAll(".graph-zoom button")].at(-1);
  while (stage.hasAttribute("data-far")) {
    larger.click();
    await frame();
  }
  const zoomedIn = await measureFrames((at) => wheel(2 * pan(at), pan(at)));
  place.querySelector(".graph-zoom button:nth-child(2)").click();
  await painted();
  let sequence = 1;
  let applied = 0;
  const changes = await measureFrames((at) => {
    const from = performance.now();
    for (let one = 0; one < Math.ceil(600 / FRAMES); one++) {
      sequence++;
      model.apply(started(count / 2 + ((at * 7 + one) % (count / 2)), sequence));
    }
    applied += performance.now() - from;
  });
  const retained = memory() - before;
  render(null, place);
  return { drawn, layout: median(scenes), zoomedOut, zoomedIn, changes, applied, retained };
};

/** The machine's limit: as many rectangles and curves in a plain SVG. */
window.measureBare = async (count) => {
  const before = memory();
  const begin = performance.now();
  const across = Math.ceil(Math.sqrt(count * 4));
  const rects = [];
  const curves = [];
  for (let id = 0; id < count; id++) {
    const [x, y] = [(id % across) * 14, Math.floor(id / across) * 20];
    rects.push(`<rect x="${x}" y="${y}" width="10" height="14" rx="2" fill="green"/>`);
    for (const by of [3, 5]) curves.push(`M${x} ${y}C${x + 9} ${y} ${x + 9} ${y + by} ${x + 20} ${y + 20}`);
  }
  const path = `<path d="${curves.join("")}" fill="none" stroke="gray"/>`;
  place.innerHTML = `<svg width="1264" height="720"><g>${path}${rects.join("")}</g></svg>`;
  await painted();
  const drawn = performance.now() - begin;
  const group = place.querySelector("g");
  const pan = await measureFrames((at) => group.setAttribute("transform", `translate(${at % 30} ${at % 15})`));
  const all = place.querySelectorAll("rect");
  const changes = await measureFrames((at) => {
    for (let one = 0; one < 7; one++) all[(at * 7 + one) % count].setAttribute("fill", at % 2 ? "red" : "blue");
  });
  const retained = memory() - before;
  place.replaceChildren();
  return { drawn, pan, changes, retained };
};
window.ready = true;
