"""The layout of the graph: positions, order, grouping and the critical path."""

from tests.browser.conftest import Visitor

#: A random graph, the same in each run.
_RANDOM_GRAPH = """const made = (count, layers, seed) => {
    let state = seed;
    const chance = (below) => {
      state = (state * 1103515245 + 12345) & 0x7fffffff;
      return Math.floor((state / 0x80000000) * below);
    };
    const size = Math.floor(count / layers);
    const boxes = [];
    const edges = [];
    for (let n = 0; n < size * layers; n++) {
      boxes.push({ key: `n${n}`, width: 100 + chance(90), height: 40 + chance(60) });
      const layer = Math.floor(n / size);
      for (let times = layer ? chance(4) : 0; times > 0; times--) {
        const back = 1 + chance(Math.min(layer, 3));
        edges.push([`n${(layer - back) * size + chance(size)}`, `n${n}`]);
      }
    }
    return { boxes, edges };
  };"""

PLACE_SCRIPT = f"""({{ layoutLevel }}) => {{
  {_RANDOM_GRAPH}
  const wrong = [];
  for (const [count, layers] of [[1, 1], [30, 5], [200, 3], [400, 2], [60, 60], [500, 20]]) {{
    for (let seed = 1; seed < 6; seed++) {{
      const {{ boxes, edges }} = made(count, layers, seed);
      const found = layoutLevel(boxes, edges, 1.6);
      const again = layoutLevel(boxes, edges, 1.6);
      const serialized = (one) => JSON.stringify([[...one.places], one.routes]);
      const name = `${{count}}/${{layers}}/${{seed}}`;
      if (serialized(found) !== serialized(again)) wrong.push(`${{name}} is placed otherwise again`);
      const rects = boxes.map((box) => ({{ ...box, ...found.places.get(box.key) }}));
      rects.forEach((one, at) => {{
        const {{ x, y, width, height }} = one;
        if (x < 0 || x + width > found.width + 0.01) wrong.push(`${{name}} x`);
        if (y < -0.01 || y + height > found.height + 0.01) wrong.push(`${{name}} y`);
        for (const other of rects.slice(at + 1)) {{
          if (one.x < other.x + other.width && other.x < one.x + one.width
              && one.y < other.y + other.height - 0.01 && other.y < one.y + one.height - 0.01) {{
            wrong.push(`${{name}}: ${{one.key}} lies on ${{other.key}}`);
          }}
        }}
      }});
      for (const [from, to] of edges) {{
        const [one, other] = [from, to].map((key) => found.places.get(key));
        if (one.layer >= other.layer || one.x >= other.x) wrong.push(`${{name}} back`);
      }}
      for (const {{ edge, points }} of found.routes) {{
        if (points.some(([x], at) => at > 0 && x < points[at - 1][0] - 0.01)) {{
          wrong.push(`${{name}}: the edge ${{edge}} runs back`);
        }}
      }}
    }}
  }}
  const box = (_, n) => ({{ key: `${{n}}`, width: 200, height: 48 }});
  const wide = Array.from({{ length: 600 }}, box);
  const {{ width, height }} = layoutLevel(wide, [], 1.6);
  if (width / height < 1 || width / height > 2.6) wrong.push(`wide: ${{width}} by ${{height}}`);
  const chain = wide.slice(1).map((box, at) => [wide[at].key, box.key]);
  const long = layoutLevel(wide, chain, 1.6);
  if (long.height > 48) wrong.push(`long: ${{long.width}} by ${{long.height}}`);
  return wrong;
}}"""

CROSSINGS_SCRIPT = """({ layoutLevel }) => {
  // A tree and a lattice can be drawn without a crossing, however they are shuffled.
  const box = (key) => ({ key, width: 100, height: 40 });
  const shuffled = (edges) => [...new Set(edges.flat())].sort(
    (one, other) => (parseInt(one, 36) * 37) % 101 - (parseInt(other, 36) * 37) % 101);
  const tree = Array.from({ length: 61 }, (_, n) => [`${(n + 1) >> 1}`, `${n + 2}`]);
  const lattice = [0, 1, 2, 3].flatMap((layer) => [0, 1, 2, 3, 4, 5].flatMap((n) => [
    [`${layer}a${n}`, `${layer + 1}a${n}`], [`${layer}a${n}`, `${layer + 1}a${n + 1}`],
  ]));
  return [tree, lattice].map((edges) => layoutLevel(shuffled(edges).map(box), edges, 1.6).crossings);
}"""

REDUCE_SCRIPT = f"""async (m) => {{
  {_RANDOM_GRAPH}
  const reach = (keys, edges) => {{
    const after = new Map(keys.map((key) => [key, []]));
    for (const [from, to] of edges) after.get(from).push(to);
    return keys.map((key) => {{
      const seen = new Set();
      const left = [key];
      for (let one = left.pop(); one !== undefined; one = left.pop()) {{
        for (const to of after.get(one)) if (!seen.has(to)) left.push(to), seen.add(to);
      }}
      return [...seen].sort().join();
    }});
  }};
  const wrong = [];
  for (let seed = 1; seed < 9; seed++) {{
    const {{ boxes, edges }} = made(70, 7, seed);
    const keys = boxes.map((box) => box.key);
    const kept = m.layoutLevel(boxes, edges, 1.6).routes.map(({{ edge }}) => edge);
    if (reach(keys, kept).join("|") !== reach(keys, edges).join("|")) wrong.push(`${{seed}} reach`);
    kept.forEach((edge, at) => {{
      const without = kept.filter((_, other) => other !== at);
      if (reach(keys, without).join("|") === reach(keys, kept).join("|")) wrong.push(`${{edge}}`);
    }});
  }}
  return wrong;
}}"""


async def test_boxes_do_not_overlap_and_edges_go_forward(visitor: Visitor) -> None:
    assert await visitor.module("graph/layout/level.js", PLACE_SCRIPT) == []


async def test_a_planar_graph_is_drawn_without_crossings(visitor: Visitor) -> None:
    assert await visitor.module("graph/layout/level.js", CROSSINGS_SCRIPT) == [0, 0]


async def test_the_drawn_edges_imply_all_edges(visitor: Visitor) -> None:
    assert await visitor.module("graph/layout/level.js", REDUCE_SCRIPT) == []
