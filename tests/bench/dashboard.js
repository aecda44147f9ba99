// What the bench of the dashboard runs in the browser. `window.measure` gives milliseconds.
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

/** A change half way: layers of nodes, each after two of those before it. */
function made(count, layers) {
  let state = 7;
  const chance = () => {
    state = (state * 1103515245 + 12345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
  const size = count / layers;
  const nodes = [];
  const edges = [];
  for (let id = 0; id < count; id++) {
    const layer = Math.floor(id / size);
    const name = `r${id}`;
    const over = id < count / 2;
    nodes.push({
      id, resource_name: name, path: name, type: `OS::Bench::T${layer % 4}`, operation: "create",
      direction: "forward", state: over ? "done" : "waiting", phase: over ? "post" : "pre",
      waiting_for: [], breakpoints: [], reason: null, inside: null,
    });
    for (let times = layer ? 2 : 0; times > 0; times--) {
      const near = Math.floor((id % size) + (chance() - 0.5) * 0.1 * size);
      const to = Math.min(size - 1, Math.max(0, near));
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

/** Frames a second, and the 95th percentile of the time between two, while something goes on. */
async function flowing(go) {
  const took = [];
  await frame();
  let last = performance.now();
  for (let at = 0; at < FRAMES; at++) {
    go(at);
    await frame();
    const now = performance.now();
    took.push(now - last);
    last = now;
  }
  took.sort((one, other) => one - other);
  const whole = took.reduce((sum, one) => sum + one, 0);
  return { rate: (1000 * FRAMES) / whole, p95: took[Math.floor(0.95 * FRAMES)] };
}

const memory = () => {
  globalThis.gc?.();
  return performance.memory.usedJSHeapSize / 1e6;
};

/** fold: as the page's own choice has it. */
window.measureGraph = async (count, layers, fold) => {
  const text = JSON.stringify(made(count, layers));
  const before = memory();
  const began = performance.now();
  const model = graphModel(JSON.parse(text));
  const read = performance.now() - began;
  const scenes = [];
  for (let times = 0; times < 3; times++) {
    const from = performance.now();
    sceneOf(viewOf(model.tree, fold, new Set()), 1.6);
    scenes.push(performance.now() - from);
  }
  const from = performance.now();
  render(html`<${Graph} model=${model} selected=${signal(null)} />`, place);
  if (fold !== "auto") {
    const folds = place.querySelector("select");
    folds.value = fold;
    folds.dispatchEvent(new Event("change"));
  }
  await painted();
  const drawn = read + performance.now() - from;
  const stage = place.querySelector(".graph-stage");
  const wheel = (x, y) => stage.dispatchEvent(
    new WheelEvent("wheel", { deltaX: x, deltaY: y, cancelable: true, bubbles: true }));
  const to = (at) => (at % 60 < 30 ? 14 : -14);
  const afar = await flowing((at) => wheel(to(at), to(at) / 2));
  const larger = [...place.querySelectorAll(".graph-zoom button")].at(-1);
  while (stage.hasAttribute("data-far")) {
    larger.click();
    await frame();
  }
  const near = await flowing((at) => wheel(2 * to(at), to(at)));
  place.querySelector(".graph-zoom button:nth-child(2)").click();
  await painted();
  let sequence = 1;
  let applied = 0;
  const changes = await flowing((at) => {
    const since = performance.now();
    for (let one = 0; one < Math.ceil(600 / FRAMES); one++) {
      sequence++;
      model.apply(started(count / 2 + ((at * 7 + one) % (count / 2)), sequence));
    }
    applied += performance.now() - since;
  });
  const kept = memory() - before;
  render(null, place);
  return { drawn, layout: median(scenes), afar, near, changes, applied, kept };
};

/** The machine's limit: as many rectangles and curves, with nothing around them. */
window.measureBare = async (count) => {
  const before = memory();
  const began = performance.now();
  const across = Math.ceil(Math.sqrt(count * 4));
  const rects = [];
  const ways = [];
  for (let id = 0; id < count; id++) {
    const [x, y] = [(id % across) * 14, Math.floor(id / across) * 20];
    rects.push(`<rect x="${x}" y="${y}" width="10" height="14" rx="2" fill="green"/>`);
    for (const by of [3, 5]) ways.push(`M${x} ${y}C${x + 9} ${y} ${x + 9} ${y + by} ${x + 20} ${y + 20}`);
  }
  const path = `<path d="${ways.join("")}" fill="none" stroke="gray"/>`;
  place.innerHTML = `<svg width="1264" height="720"><g>${path}${rects.join("")}</g></svg>`;
  await painted();
  const drawn = performance.now() - began;
  const group = place.querySelector("g");
  const pan = await flowing((at) => group.setAttribute("transform", `translate(${at % 30} ${at % 15})`));
  const all = place.querySelectorAll("rect");
  const changes = await flowing((at) => {
    for (let one = 0; one < 7; one++) all[(at * 7 + one) % count].setAttribute("fill", at % 2 ? "red" : "blue");
  });
  const kept = memory() - before;
  place.replaceChildren();
  return { drawn, pan, changes, kept };
};
window.ready = true;
