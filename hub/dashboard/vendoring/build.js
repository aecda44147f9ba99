// Builds page/vendor from the versions in package-lock.json: `npm run vendor`. Each bundle is one ES module
// with its types; LICENSES.txt lists version and license of every package in a bundle.
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "..", "page", "vendor");
const entries = readdirSync(here).filter((name) => name.endsWith(".d.ts"));

const made = await build({
  entryPoints: entries.map((name) => join(here, name.replace(".d.ts", ".js"))),
  outdir: target,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  metafile: true,
  logLevel: "error",
});
for (const name of entries) copyFileSync(join(here, name), join(target, name));
writeFileSync(join(target, "LICENSES.txt"), licenses(made.metafile));

/** The packages of each bundle with their licenses. */
function licenses(metafile) {
  const used = new Map();
  for (const [path, { inputs }] of Object.entries(metafile.outputs)) {
    for (const input of Object.keys(inputs)) {
      const found = input.match(/^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//);
      if (!found) continue;
      const bundles = used.get(found[1]) ?? new Set();
      used.set(found[1], bundles.add(basename(path)));
    }
  }
  const folders = [...used.keys()].sort();
  return folders.map((folder) => license(folder, [...used.get(folder)].sort())).join("\n");
}

function license(folder, bundles) {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  if (!file || !existsSync(join(folder, file)))
    throw new Error(`${manifest.name} has no license file`);
  const head = `${manifest.name} ${manifest.version} (${manifest.license}), in ${bundles.join(", ")}`;
  const text = readFileSync(join(folder, file), "utf8").trim();
  return `${head}\n${"=".repeat(head.length)}\n\n${text}\n`;
}
