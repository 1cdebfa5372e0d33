"""The command line starts light, knows its version and ends with the right code."""

from __future__ import annotations

import subprocess
import sys

from coopt._version import __version__
from coopt.cli.main import COMMANDS

HEAVY = {"pyomo", "numpy", "pydantic", "rich", "networkx", "highspy", "scipy"}


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_importing_the_command_line_imports_nothing_heavy():
    code = "import sys, coopt.cli.main; print(*{name.split('.')[0] for name in sys.modules})"
    assert not HEAVY & set(python(code).stdout.split())


def test_help_imports_nothing_heavy():
    asked = [["--help"], *([name, "--help"] for name in COMMANDS), ["--version"]]
    code = (
        "import sys\nfrom coopt.cli.main import main\n"
        f"for words in {asked!r}:\n"
        "    assert main(words, prog_name='coopt', standalone_mode=False) in (0, None)\n"
        f"    assert not {HEAVY!r} & {{name.split('.')[0] for name in sys.modules}}, words\n"
        "    print('answered', file=sys.stderr)"
    )
    done = python(code)
    assert (done.returncode, done.stderr.count("answered")) == (0, len(asked)), done.stderr
    assert done.stdout.count("Usage: coopt") == len(asked) - 1


def test_verdicts_and_catalog_are_shown_without_arrays_and_solvers(planned):
    question, plan = map(str, planned)
    asked = [["verify", question, plan], ["certify", question, plan], ["diff", plan, plan], ["catalog", "show", "h200"]]
    code = (
        "import sys\nfrom coopt.cli.main import main\n"
        f"for words in {asked!r}:\n"
        "    assert not main(words, prog_name='coopt', standalone_mode=False)\n"
        "    assert not {'numpy', 'pyomo', 'highspy'} & set(sys.modules), words\n"
    )
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert "Accepted" in done.stdout


def test_solving_loads_nothing_that_only_other_commands_and_solvers_need(written):
    code = (
        "import sys\nfrom coopt.cli.main import main\n"
        f"try:\n    main(['solve', {str(written())!r}], prog_name='coopt')\n"
        "finally:\n    print(*sys.modules, file=sys.stderr)"
    )
    done = python(code)
    assert done.returncode == 0
    loaded = set(done.stderr.split())
    assert "coopt.solving.highs" in loaded
    assert not {"networkx", "pyomo.environ", "scipy"} & loaded
    assert not {f"coopt.plan.{form}" for form in ("difference", "explanation", "networks", "traffic")} & loaded
    assert not {"coopt.report.page", "coopt.verifier"} & loaded


def test_version_is_the_one_version(coopt):
    assert coopt("--version").stdout == f"coopt {__version__}\n"


def test_help_lists_every_command_with_a_whole_sentence(coopt):
    lines = coopt("--help").stdout.splitlines()
    for name in COMMANDS:
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert line.endswith(".")
        assert not line.endswith("...")


def test_a_reader_that_goes_away_is_no_error_and_keeps_the_exit_code(written):
    command = f"'{sys.executable}' -c 'from coopt.cli.main import main; main()' solve {written()} | head -n 1"
    done = subprocess.run(
        ["bash", "-c", f"{command}; echo ${{PIPESTATUS[0]}}"], capture_output=True, text=True, check=False
    )
    headline, code = done.stdout.splitlines()
    assert "8 x hgx-h100-8" in headline
    assert code == "0"
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_full_disk_under_stdout_is_a_refusal():
    done = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -c 'from coopt.cli.main import main; main()' schema > /dev/full"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "coopt: standard output: cannot be written (No space left on device), needs another place\n"
