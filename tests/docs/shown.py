"""What a page shows, run as it stands: files are written, commands and Python run, and what they print is compared."""

import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from coopt.cli.main import main
from tests.conftest import Told

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
ELSEWHERE = {
    "make demo": "tests/docs/test_pages_run.py",
    "python docs/embedding/service.py": "tests/embedding/test_service.py",
    "coopt serve": "tests/serve/test_command.py",
    "curl": "tests/embedding/test_service.py",
    "bash megatron.sh": "tests/report/test_megatron.py",
    "awk": "tests/report/test_rank_file.py",
    ". .venv/bin/activate": "Makefile",
}
"""Commands that need more than this process, or that several pages show, and where they are run or made."""


@dataclass
class Reader:
    """Somebody who follows a page from top to bottom, in the folder where it is read."""

    once: Callable[..., Told]
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})
    exit_code: int = 0

    def follow(self, text: str) -> None:
        """Do what every block of the page says."""
        for language, title, block in BLOCK.findall(text):
            if title and language == "diff":
                edit(Path(title), block)
            elif title:
                Path(title).write_text(block, "utf-8")
            elif language == "console":
                self._type(block)
            elif language == "python":
                exec(compile(block, "page", "exec", dont_inherit=True), self.names)

    def _type(self, block: str) -> None:
        """Type the commands of a block and compare what they print."""
        assert block.startswith("$ "), block
        runs = [run.partition("\n")[::2] for run in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
        for place, (command, shown) in enumerate(runs):
            if command == "echo $?":
                assert shown.strip() == str(self.exit_code), f"{runs[place - 1][0]} exits with {self.exit_code}"
                continue
            compare(command, shown, self._run(command))
            asked = place + 1 < len(runs) and runs[place + 1][0] == "echo $?"
            assert asked or self.exit_code == 0, f"{command} exits with {self.exit_code}"

    def _run(self, command: str) -> str | None:
        """What a command prints; None where it runs elsewhere."""
        self.exit_code = 0
        program, _, rest = command.partition(" ")
        homes = {home for start, home in ELSEWHERE.items() if command.startswith(start)}
        if program != "coopt" or homes:
            (home,) = homes
            assert (ROOT / home).exists()
            return None
        if asked := re.fullmatch(r"(solve|suite run|explain) (instances/\S+\.toml)(?: -o (\S+))?", rest):
            command, instance, output = asked.groups()
            told = self.once(*command.split(), str(ROOT / instance), *["-o"] * (command != "explain"))
            self.exit_code = told.exit_code
            if output is not None:
                (shutil.copytree if told.made.is_dir() else shutil.copy)(told.made, output)
            return told.printed
        done = CliRunner().invoke(main, shlex.split(rest, comments=True), catch_exceptions=False)
        self.exit_code = done.exit_code
        return done.output


def edit(file: Path, block: str) -> None:
    """Change the lines of a file that a block marks with `-` and `+`."""
    before, after = ("".join(re.findall(rf"^{sign}(.*\n)", block, re.MULTILINE)) for sign in ("-", r"\+"))
    text = file.read_text("utf-8")
    assert text.count(before) == 1, f"{file}: {before!r} stands there {text.count(before)} times"
    file.write_text(text.replace(before, after), "utf-8")


def compare(command: str, shown: str, printed: str | None) -> None:
    """What is shown has to be printed, in this order; a line `...` stands for any number of lines."""
    place = 0
    for part in re.split(r"^\.\.\.$\n?", shown, flags=re.MULTILINE) if printed is not None else ():
        wanted = part.strip("\n")
        found = (printed or "").find(wanted, place)
        assert found >= 0, f"$ {command}\n{wanted}\n\nis not in\n\n{printed}"
        place = found + len(wanted)


def commands_of(name: str) -> list[str]:
    """The coopt commands of a target of the Makefile, as a page shows them."""
    (lines,) = re.findall(rf"^{name}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    found: list[str] = re.findall(r"^\t\$\(BIN\)/(coopt .*)$", lines, re.MULTILINE)
    assert found
    return found
