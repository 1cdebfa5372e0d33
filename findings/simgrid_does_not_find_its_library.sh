#!/usr/bin/env bash
# pip installs SimGrid, and its module does not find the library that was installed beside it.
#
# Versions   simgrid==4.1, which is there as source alone: cmake, g++ and libboost-dev build it, in some ten
#            minutes. pybind11==2.13.6, setuptools==84.2.1, wheel==0.48.0 (it asks for any pybind11, and does not
#            compile with 3.1.0)
# Expected   What pip says it has installed can be imported.
# Behaviour  libsimgrid.so.4.1 is in site-packages beside the module, which names it as needed but says no place:
#            it is looked for in the system alone. It is imported where LD_LIBRARY_PATH names site-packages.
# Output seen
#   installed: libsimgrid.so.4.1 beside the module
#   import: ImportError: libsimgrid.so.4.1: cannot open shared object file: No such file or directory
#   import, with LD_LIBRARY_PATH: simgrid.Engine
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip=("$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check)
"${pip[@]}" pybind11==2.13.6 setuptools==84.2.1 wheel==0.48.0
"${pip[@]}" --no-build-isolation simgrid==4.1
cat >"$folder/seen.py" <<'PYTHON'
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

IMPORT = "import simgrid; print(f'{simgrid.Engine.__module__}.{simgrid.Engine.__name__}')"
packages = Path(sysconfig.get_path("platlib"))
places = sorted(packages.rglob("libsimgrid.so.4.1"))
assert list(packages.glob("simgrid.*.so")), "no module"
print("installed:", *(place.name for place in places), "beside the module" if places[0].parent == packages else "elsewhere")


def said(**variables):
    done = subprocess.run([sys.executable, "-c", IMPORT], env=os.environ | variables, capture_output=True, text=True)
    return (done.stdout or done.stderr).strip().splitlines()[-1]


print("import:", said(LD_LIBRARY_PATH=""))
print("import, with LD_LIBRARY_PATH:", said(LD_LIBRARY_PATH=str(packages)))
PYTHON
cd "$folder"
./venv/bin/python seen.py >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
installed: libsimgrid.so.4.1 beside the module
import: ImportError: libsimgrid.so.4.1: cannot open shared object file: No such file or directory
import, with LD_LIBRARY_PATH: simgrid.Engine
SEEN
