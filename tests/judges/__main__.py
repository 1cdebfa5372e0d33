"""Run all judges, and write their table in docs/judges.md: `python -m tests.judges [NAME ...]`.

Names of programs, or parts of them, run these alone, and write their rows.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.judges import accessibility, configurations, documents, launches, networks, programs, sharing
from tests.judges.judge import Bench, DisagreementError, Judge, NoPythonError, NotInstalledError

JUDGES = (
    *launches.JUDGES,
    *configurations.JUDGES,
    *programs.JUDGES,
    *networks.JUDGES,
    *documents.JUDGES,
    *sharing.JUDGES,
    *accessibility.JUDGES,
)
MOST_SKIPPED = 4
PAGE = Path(__file__).parents[2] / "docs" / "judges.md"
HEAD = "| program | version | what it judged | result |"


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one judge said."""

    judge: Judge
    result: str
    skipped: bool = False
    failed: bool = False

    def __str__(self) -> str:
        return f"| {self.judge.program} | {self.judge.versions} | {self.judge.judged} | {self.result} |"


def row_of(judge: Judge, folder: Path) -> Row:
    """What a judge says, in a folder of its own."""
    bench = Bench(judge=judge, folder=folder)
    try:
        bench.install()
        return Row(judge=judge, result=judge.read(bench))
    except NotInstalledError as error:
        allowed = judge.may_be_skipped or isinstance(error, NoPythonError)
        return Row(judge=judge, result=f"skipped: {error}", skipped=True, failed=not allowed)
    except DisagreementError as error:
        return Row(judge=judge, result=f"**{error}**", failed=True)


def cells(page: str) -> list[list[str]]:
    """Cells of the table of a page."""
    _, _, rest = page.partition(HEAD + "\n")
    return [line.strip("| ").split(" | ") for line in rest.split("\n\n")[0].splitlines()[1:]]


def written(page: str, rows: list[Row]) -> str:
    """A page with these rows, and those of other judges as they are."""
    before, _, rest = page.partition(HEAD)
    lines = {name: f"| {name} | {' | '.join(others)} |" for name, *others in cells(page)}
    lines |= {row.judge.program: str(row) for row in rows}
    table = [HEAD, "|---|---|---|---|", *(lines[judge.program] for judge in JUDGES if judge.program in lines)]
    _, blank, after = rest.partition("\n\n")
    return before + "\n".join(table) + (blank + after or "\n")


def main(names: list[str]) -> int:
    """Run the judges that are named, or all; 1 where one fails or too many are skipped."""
    chosen = [judge for judge in JUDGES if not names or any(name.lower() in judge.program.lower() for name in names)]
    rows = []
    with TemporaryDirectory(prefix="coopt-judges-") as folder:
        tempfile.tempdir = folder  # what is exported goes with it
        for judge in chosen:
            start = time.perf_counter()
            with TemporaryDirectory() as own:  # some install gigabytes
                rows.append(row_of(judge, Path(own, "judge")))
            sys.stderr.write(f"{time.perf_counter() - start:5.0f} s  {rows[-1]}\n")
    skipped = sum(row.skipped for row in rows)
    PAGE.write_text(written(PAGE.read_text("utf-8"), rows), "utf-8")
    failed = sum(row.failed for row in rows)
    sys.stdout.write(f"{len(rows) - failed - skipped} passed, {failed} failed, {skipped} skipped\n")
    return int(failed > 0 or skipped > MOST_SKIPPED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
