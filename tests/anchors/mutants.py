"""Wrong beliefs, one at a time: how many of them do the anchors notice?

    python -m tests.anchors.mutants [MUTANTS] [SEED]

Each mutant changes one unit, factor or default of `coopt/instance/`, or one figure of `coopt/catalog/`, in a copy of
the tree, and is killed where the tests of anchors fail there. Prints those that live, then killed of all; the exit code
is 1 where fewer than 95% are killed. Of the code every number, flag and word that is a default counts, but no bounds of
validation, places in sequences, and what is compared with, rounded away or only shown.
"""

import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FACTORS = 2.0, 0.5, 1000 / 1024, 1024 / 1000, 8.0, 1000.0
UNSEEN = {"ge", "le", "gt", "lt", "max_length", "min_length", "rel_tol", "frozen", "exclude", "strict", "cutoff", "n"}
UNSEEN |= {"indent", "by_alias", "exclude_defaults", "sort_keys", "kw_only", "listed", "optional", "start"}
UNSEEN |= {"maxsize", "include_url", "longest"}
NO_BELIEF = {"base", "complaints", "errors", "files", "kinds", "quotes", "tables", "texts"}
"""Files of `coopt/instance/` that read, refuse and show, and hold no unit, factor or default of a plan."""
LIMIT = re.compile(r"^(MOST|LONGEST|LEAST|MAX_SITES|MAX_SLOWDOWN|YEARS_FROM|ROUND_UP)\w*(, LONGEST\w*)* = ")
EQUIVALENT = {
    '"switches": [{"name": UNNAMED': "those that stand come in its place when the question is read",
    '"optics": [{"name": UNNAMED': "those that stand come in its place when the question is read",
    "if count >= gpus), default=0)": "no question has 0 GPUs",
    "for mode in self.modes), 0.0)": "no port has a rate of 0",
    "experts_across=False, micro_batch=1": "those of each mapping come in their place",
    "round(known.law.away(": "distances are equal or apart by far more",
    "stages, chunks) for p in range(1, count + 1))": "more stages than chunks never divide them",
    "network_exclusions |= {": "such questions have one value of the key",
    'tables["network"]["mates"] = True': "any value tells the question from one without",
}
"""Lines of which no change changes an answer, and why."""
SLOW = "test_tables.py", "test_results.py"
KILLED_SHARE = 0.95


class Mutant(NamedTuple):
    """A change of one line of a file."""

    file: Path
    line: int
    old: str
    new: str


def code_mutants() -> Iterator[list[Mutant]]:
    """What may be wrong at each place in the code."""
    for file in sorted((ROOT / "coopt" / "instance").glob("*.py")):
        if file.stem in NO_BELIEF:
            continue
        lines = file.read_text("utf-8").splitlines()
        tree = ast.parse("\n".join(lines))
        for node, texts in [*((node, _wrong(node.value)) for node in _beliefs(tree)), *_words(tree)]:
            old = lines[node.lineno - 1]
            if not LIMIT.match(old) and not any(part in old for part in EQUIVALENT):
                changed = [f"{old[: node.col_offset]}{text}{old[node.end_col_offset :]}" for text in texts]
                yield [Mutant(file, node.lineno, old, new) for new in changed]


def _words(tree: ast.AST) -> Iterator[tuple[ast.Constant, list[str]]]:
    """The words that are defaults, each with the others that may stand there."""
    aliases = {
        node.targets[0].id: _options(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            names = [name.id for name in ast.walk(node.annotation) if isinstance(name, ast.Name)]
            words = {*_options(node.annotation), *(word for name in names for word in aliases.get(name, ()))}
            yield node.value, [f'"{word}"' for word in sorted(words - {node.value.value})]


def _options(annotation: ast.AST) -> list[str]:
    """The words of the literals in an annotation."""
    literals = [
        node.slice
        for node in ast.walk(annotation)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Literal"
    ]
    constants = [node for literal in literals for node in ast.walk(literal) if isinstance(node, ast.Constant)]
    return [node.value for node in constants if isinstance(node.value, str)]


def _beliefs(tree: ast.AST, *, seen: bool = True) -> Iterator[ast.Constant]:
    """The constants below a node that some result depends on."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Constant):
            if seen and isinstance(child.value, bool | int | float):
                yield child
            continue
        # the arguments of a function that reads tables hold no belief either
        hidden = isinstance(child, ast.Compare | ast.JoinedStr | ast.Slice | ast.arguments)
        hidden = hidden or (isinstance(child, ast.keyword) and child.arg in UNSEEN)
        if isinstance(child, ast.Subscript):
            yield from _beliefs(child.value, seen=seen)
            # annotations hold types and bounds in their brackets
            if isinstance(child.slice, ast.Tuple) and not ast.unparse(child.value).endswith("Literal"):
                yield from _beliefs(child.slice, seen=seen)
        else:
            yield from _beliefs(child, seen=seen and not hidden)


def _wrong(value: object) -> list[str]:
    """What may stand in place of a number or a flag."""
    if isinstance(value, bool):
        return [str(not value)]
    assert isinstance(value, int | float)
    if 0 < abs(value) < 1e-9:
        return []  # rounding, and no belief
    if value == 0:
        return ["1"] if isinstance(value, int) else ["0.1", "1.0"]
    return _scaled(value)


def _scaled(value: float) -> list[str]:
    scaled = [value * factor for factor in FACTORS]
    if isinstance(value, int):
        scaled = [max(1, round(number)) for number in scaled]
    return list(dict.fromkeys(f"{number!r}" for number in scaled if number != value))


def catalog_mutants() -> Iterator[list[Mutant]]:
    """What may be wrong at each figure of the catalog."""
    figure = re.compile(r"(?<=[=\[ ])-?\d[\d_]*(?:\.\d+)?(?:e-?\d+)?(?=[ ,\]}\n]|$)")
    for file in sorted((ROOT / "coopt" / "catalog").glob("*.toml")):
        for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1):
            if re.match(r"^\w+ = ", line) and not re.match(r"^(name|description|sources|box|fibre) = ", line):
                for match in figure.finditer(re.sub(r'"[^"]*"', lambda text: "#" * len(text[0]), line).split(" #")[0]):
                    text = match[0].replace("_", "")
                    value = int(text) if re.fullmatch(r"-?\d+", text) else float(text)
                    changed = ["1"] if value == 0 else _scaled(value)
                    yield [
                        Mutant(file, number, line, f"{line[: match.start()]}{c}{line[match.end() :]}") for c in changed
                    ]


def drawn(count: int, seed: int) -> list[Mutant]:
    """So many mutants, half of the code and half of the catalog, each at a place of its own while there are any."""
    rng, mutants = random.Random(seed), []
    for places, share in ((list(code_mutants()), count // 2), (list(catalog_mutants()), count - count // 2)):
        chosen = [place for place in places if place]
        rng.shuffle(chosen)
        mutants += [rng.choice(chosen[n % len(chosen)]) for n in range(share)]
    return mutants


def is_killed(tree: Path, mutant: Mutant) -> bool:
    """Whether the anchors fail in a copy of the tree that has the mutant in it."""
    file = tree / mutant.file.relative_to(ROOT)
    text = file.read_text("utf-8")
    lines = text.splitlines(keepends=True)
    lines[mutant.line - 1] = lines[mutant.line - 1].replace(mutant.old, mutant.new)
    file.write_text("".join(lines), "utf-8")
    names = sorted(
        (path.name for path in (tree / "tests" / "anchors").glob("test_*.py")), key=lambda name: name in SLOW
    )
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, *(f"tests/anchors/{name}" for name in names)]
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, check=False, timeout=600)
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_text(text, "utf-8")
    return done.returncode != 0


def _copy(folder: Path) -> Path:
    """A tree with what the anchors need."""
    for name in ("coopt", "formulations", "tests", "benchmarks", "instances"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def main(count: int = 200, seed: int = 0, workers: int = 2) -> int:
    """Report the mutants that live, and the share killed."""
    mutants = drawn(count, seed)
    killed = 0
    with tempfile.TemporaryDirectory() as folder:
        trees = [_copy(Path(folder) / str(n)) for n in range(workers)]
        nothing = Mutant(ROOT / "pyproject.toml", 1, "", "")
        assert not is_killed(trees[0], nothing), "the anchors fail without a mutant"
        with ThreadPoolExecutor(workers) as pool:
            answers = pool.map(
                lambda n: [is_killed(trees[n], mutant) for mutant in mutants[n::workers]], range(workers)
            )
            for n, answers_of_tree in enumerate(answers):
                killed += sum(answers_of_tree)
                for mutant, dead in zip(mutants[n::workers], answers_of_tree, strict=True):
                    if not dead:
                        place = f"{mutant.file.relative_to(ROOT)}:{mutant.line}"
                        sys.stdout.write(f"lives: {place}: {mutant.old.strip()}  ->  {mutant.new.strip()}\n")
    sys.stdout.write(f"{killed} of {len(mutants)} killed ({killed / len(mutants):.1%})\n")
    return 0 if killed >= KILLED_SHARE * len(mutants) else 1


if __name__ == "__main__":
    raise SystemExit(main(*map(int, sys.argv[1:])))
