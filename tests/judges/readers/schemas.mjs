// Documents that ajv refuses by a JSON Schema, in strict mode: node schemas.mjs PACKAGES QUESTION ANSWER.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const [packages, question, answer] = process.argv.slice(2);
const installed = createRequire(packages + "/");
const Ajv = installed("ajv/dist/2020").default;
const read = (path) => JSON.parse(readFileSync(path, "utf-8"));

function refused({ schema, documents }) {
  try {
    const check = new Ajv({ strict: true, allErrors: true }).compile(read(schema));
    const failing = documents.filter((path) => !check(read(path)));
    return failing.map((path) => (check(read(path)), `${path}: ${JSON.stringify(check.errors[0])}`));
  } catch (error) {
    return [`${schema}: ${error.message}`];
  }
}

writeFileSync(answer, JSON.stringify(read(question).flatMap(refused)));
