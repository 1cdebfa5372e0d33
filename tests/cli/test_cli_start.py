"""The command line starts light, knows its version and ends with the right code."""

import subprocess
import sys

import pytest

from coopt._version import __version__
from coopt.cli.main import COMMANDS

HEAVY = {"pyomo", "numpy", "pydantic", "rich", "networkx", "highspy", "scipy"}
MAIN = "import sys\nfrom coopt.cli.main import main\n"


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_help_imports_nothing_heavy():
    asked = [["--help"], *([name, "--help"] for name in COMMANDS), ["--version"]]
    code = (
        f"{MAIN}for words in {asked!r}:\n"
        f"    assert not {HEAVY!r} & {{name.split('.')[0] for name in sys.modules}}, words\n"
        "    assert main(words, prog_name='coopt', standalone_mode=False) in (0, None)\n"
        "    print('answered', file=sys.stderr)"
    )
    done = python(code)
    assert (done.returncode, done.stderr.count("answered")) == (0, len(asked)), done.stderr
    assert done.stdout.count("Usage: coopt") == len(asked) - 1
    assert done.stdout.splitlines()[-1] == f"coopt {__version__}"


def test_verdicts_and_catalog_are_shown_without_arrays_and_solvers(planned):
    question, plan = map(str, planned)
    asked = [["verify", question, plan], ["certify", question, plan], ["diff", plan, plan], ["catalog", "show", "h200"]]
    done = python(
        f"{MAIN}for words in {asked!r}:\n"
        "    assert not main(words, prog_name='coopt', standalone_mode=False)\n"
        "    assert not {'numpy', 'pyomo', 'highspy'} & set(sys.modules), words\n"
    )
    assert (done.returncode, "Accepted" in done.stdout) == (0, True), done.stderr


def test_solving_loads_nothing_that_only_other_commands_and_solvers_need(written):
    solving = f"    main(['solve', {str(written())!r}], prog_name='coopt')\n"
    done = python(f"{MAIN}try:\n{solving}finally:\n    print(*sys.modules, file=sys.stderr)")
    loaded = set(done.stderr.split())
    assert (done.returncode, "coopt.solving.highs" in loaded) == (0, True)
    assert not {"networkx", "pyomo.environ", "scipy"} & loaded
    assert not {f"coopt.plan.{form}" for form in ("difference", "explanation", "networks", "traffic")} & loaded
    assert not {"coopt.report.page", "coopt.verifier"} & loaded


def test_help_lists_every_command_with_a_whole_sentence(coopt):
    lines = coopt("--help").stdout.splitlines()
    for name in COMMANDS:
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert line.endswith(".")
        assert not line.endswith("...")


@pytest.mark.parametrize(("reader", "code"), [("| head -n 1", "0"), ("> /dev/full", "1")])
def test_a_reader_that_goes_away_is_no_error_and_a_full_disk_is(reader: str, code: str):
    command = f"'{sys.executable}' -c 'from coopt.cli.main import main; main()' schema {reader}"
    words = ["bash", "-c", f"{command}; echo ${{PIPESTATUS[0]}}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.split()[-1] == code
    said = "coopt: standard output: cannot be written (No space left on device), needs free space on its disk\n"
    assert done.stderr == (said if code == "1" else "")
