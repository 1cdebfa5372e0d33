"""Commands that are ended while they write, run by hand: `python -m tests.cli.interruptions COUNT SEED`.

A command that replaces or adds files is killed, interrupted, asked to end, or finds the disk full after some bytes, at
a random moment; or it runs twice at once, of which one at least gets through. Every file that was there is then as it
was or whole, and what it holds is no worse; every other one is whole. A full disk is a file system in memory, which
takes root; without it a limit on the size of files stands in.
"""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import coopt
from coopt.instance.texts import InstanceError
from coopt.plan.front import Front
from coopt.plan.store import read_plan
from coopt.suite.folder import read_results

ROOT = Path(__file__).parents[2]
TINY = ROOT / "instances" / "tiny-64.toml"
SUITE = f"""\
schema = 1
name = "small"
[[grid]]
name = "bounds"
instances = "{TINY}"
[grid.vary]
"workload.max_iteration_time_s" = [0.8, 0.9, 1.0]
"""
WAYS = ("kill", "interrupt", "end", "full disk", "twice")
SIGNALS = {"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "end": signal.SIGTERM}
COMMANDS = {
    "solve": ["solve", TINY, "-o", "plan.json"],
    "pareto": ["pareto", TINY, "--points", "5", "-o", "front"],
    "new": ["new", "new.toml"],
    "report": ["report", TINY, "plan.json", "--no-front", "--no-sensitivity", "-o", "report.html"],
    "calibrate": ["calibrate", "rows.csv", "--generation", "ampere", "-o", "lines.toml", "--parameters", "gemm"],
    "suite": ["suite", "run", "suite.toml", "-o", "run", "--workers", "1", "--resume"],
}
ANOTHER = {"solve": ["--seed", "1"]}
"""What makes the second of two runs at once write another file."""
LONGEST_S = 300.0


def prepared(folder: Path) -> None:
    """What stands before a command begins: all it writes but a new instance, and one case of the suite."""
    (folder / "suite.toml").write_text(SUITE, "utf-8")
    rows = (ROOT / "benchmarks" / "published.csv").read_text("utf-8").splitlines()
    (folder / "rows.csv").write_text("\n".join([rows[0], *(row for row in rows if row.startswith("korth"))]), "utf-8")
    for name, words in COMMANDS.items():
        done = ended(words, folder)
        assert done == 0, (name, done)
    (folder / "new.toml").unlink()
    for case in sorted((folder / "run" / "cases").iterdir())[1:]:
        case.unlink()


def ended(words: list[object], folder: Path, after_s: float = LONGEST_S, way: str = "kill", free: int = 0) -> int:
    """The exit code of a command that is ended after so long, if it still runs; by a full disk of so many bytes."""

    def limited() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if way == "full disk" and not os.path.ismount(folder):
            resource.setrlimit(resource.RLIMIT_FSIZE, (free, free))

    command = [sys.executable, "-m", "coopt", *map(str, words)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=limited, start_new_session=True,
    ) as running:  # fmt: skip
        try:
            _, told = running.communicate(timeout=after_s)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, SIGNALS.get(way, signal.SIGKILL))
            _, told = running.communicate(timeout=LONGEST_S)
        assert "Traceback" not in told, told
        return running.returncode


def ended_twice(words: list[object], folder: Path, between_s: float) -> int:
    """The exit code of the better of two runs of a command that overlap."""
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ended, words, folder)
        time.sleep(between_s)
        codes = {ended([*words, *ANOTHER.get(str(words[0]), [])], folder), first.result()}
    assert codes <= {0, 1}, codes
    return min(codes)


@contextmanager
def workplace(copied: Path, free: int | None) -> Iterator[Path]:
    """A copy of a folder, on a disk with so many bytes left where that is asked for and root may mount one."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        size = sum(file.stat().st_size // 4096 * 4096 + 8192 for file in copied.rglob("*")) + (free or 0)
        mounts = free is not None and os.geteuid() == 0
        if mounts:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
        try:
            shutil.copytree(copied, folder, dirs_exist_ok=True)
            yield folder
        finally:
            if mounts:
                subprocess.run(["umount", "-l", folder], check=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def plan_is_no_worse(before: Path, after: Path) -> bool:
    kept, old = read_plan(after), read_plan(before)
    return bool(kept.parts) and kept.status == "optimal" and kept.objective.value == old.objective.value


def front_is_no_worse(before: Path, after: Path) -> bool:
    kept, old = (Front.model_validate_json(file.read_text("utf-8")) for file in (after, before))
    return kept.complete and len(kept.points) == len(old.points)


def rows_are_no_worse(before: Path, after: Path) -> bool:
    answered = {case.stem for case in (before.parent / "cases").iterdir()}
    return answered <= {str(row["case_id"]) for row in read_results(after.parent)[1]}


def is_whole(file: Path) -> bool:
    """Whether a file ends as one of its kind does."""
    if file.name == ".lock":
        return True
    content = file.read_bytes()
    if file.suffix == ".json":
        return bool(json.loads(content))
    if file.suffix == ".jsonl":
        return all(json.loads(line) for line in content.splitlines()[:-1])
    if file.name == "new.toml":
        return bool(coopt.load(file))
    ends = {".html": b"</html>", ".svg": b"</svg>", ".png": b"IEND\xaeB`\x82", ".parquet": b"PAR1"}
    return len(content) > 0 and content.rstrip().endswith(ends.get(file.suffix, b""))


CHECKS: dict[str, Callable[[Path, Path], bool]] = {
    "plan.json": plan_is_no_worse,
    "front/front.json": front_is_no_worse,
    "run/results.parquet": rows_are_no_worse,
}


def worse(before: Path, after: Path, way: str) -> list[str]:
    """The files that are worse than before, by name."""
    old, new = contents(before), contents(after)
    found = [f"{name} is gone" for name in old if name not in new and not name.endswith(".lock")]
    for name, content in new.items():
        temporary = name.endswith(".tmp")
        if temporary and way != "kill":
            found.append(f"{name} is left")
        if temporary or old.get(name) == content:
            continue
        try:
            if not is_whole(after / name):
                found.append(f"{name} is cut off")
            elif name in CHECKS and not CHECKS[name](before / name, after / name):
                found.append(f"{name} holds less")
        except (ValueError, InstanceError) as error:
            found.append(f"{name}: {error}")
    return found


def main(count: int, seed: int) -> int:
    """How many files were worse."""
    rng, found, codes = random.Random(seed), 0, Counter[tuple[str, str, int]]()
    with tempfile.TemporaryDirectory() as place:
        before = Path(place)
        prepared(before)
        took_s = {}
        for name, words in COMMANDS.items():
            with workplace(before, None) as folder:
                started = time.perf_counter()
                ended(words, folder)
                took_s[name] = time.perf_counter() - started
        for number in range(count):
            name, way = rng.choice([*COMMANDS]), rng.choice(WAYS)
            after_s, free = took_s[name] * rng.uniform(0.2, 1.05), rng.choice([0, rng.randrange(1 << 16), 1 << 18])
            full = way == "full disk"
            with workplace(before, free if full else None) as folder:
                if way == "twice":
                    code = ended_twice(COMMANDS[name], folder, rng.uniform(0.0, 0.3) * after_s)
                else:
                    code = ended(COMMANDS[name], folder, LONGEST_S if full else after_s, way, free)
                codes[name, way, code] += 1
                lost = [f"exit codes of at least {code}"] if way == "twice" and code else []
                for fault in lost + worse(before, folder, way):
                    found += 1
                    sys.stdout.write(f"{number}: {name}, {way} after {after_s:.2f} s, {free} bytes: {fault}\n")
                    sys.stdout.flush()
    sys.stdout.write("".join(f"{' '.join(map(str, key))}: {times}\n" for key, times in sorted(codes.items())))
    sys.stdout.write(f"{count} interruptions of seed {seed}: {found} files worse\n")
    return found


if __name__ == "__main__":
    sys.exit(min(main(*map(int, sys.argv[1:3])), 1))
