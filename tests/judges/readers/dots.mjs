// What Graphviz makes of DOT files: node dots.mjs PACKAGES QUESTION ANSWER, of paths, and of nodes and edges.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const [packages, question, answer] = process.argv.slice(2);
const { Graphviz } = await import(createRequire(packages + "/").resolve("@hpcc-js/wasm-graphviz"));
const graphviz = await Graphviz.load();

function counted(path) {
  const graph = JSON.parse(graphviz.layout(readFileSync(path, "utf-8"), "dot_json", "dot"));
  const inside = new Set((graph.objects ?? []).flatMap((each) => (each.nodes ? each._gvid : [])));
  return { nodes: graph.objects.filter((each) => !inside.has(each._gvid)).length, edges: (graph.edges ?? []).length };
}

const paths = JSON.parse(readFileSync(question, "utf-8"));
writeFileSync(answer, JSON.stringify(paths.map(counted)));
