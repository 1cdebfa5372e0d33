#!/usr/bin/env bash
# dask-jobqueue reads a walltime of 24:00:00 in its configuration, and asks Slurm for sixty days.
#
# Versions   dask-jobqueue==0.9.0, dask==2026.8.0, distributed==2026.8.0, pyyaml==6.0.4; omegaconf==2.4.0 and
#            ruamel.yaml==0.19.1 beside it
# Expected   The time limit of jobqueue.yaml stands in the job script as it was written, as that of 08:00:00 does.
# Behaviour  PyYAML reads YAML 1.1, where digits with colons are a number to base 60 unless they start with 0: a day is
#            86400, in seconds. The script says -t 86400, and a bare number is minutes for sbatch: 60 days, over the
#            limit of most partitions, or a window of 60 days that backfill has to keep. From 10:00:00 on, limits of
#            less than a day turn into weeks; 08:00:00 and 1-00:00:00 stay text. Nothing is said. OmegaConf, which
#            Hydra reads launchers of jobs with, does the same; ruamel.yaml (YAML 1.2) does not. In quotes all agree.
# Output seen
#   08:00:00: -t 08:00:00; OmegaConf 08:00:00, ruamel.yaml 08:00:00
#   10:00:00: -t 36000; OmegaConf 36000, ruamel.yaml 10:00:00
#   24:00:00: -t 86400; OmegaConf 86400, ruamel.yaml 24:00:00
#   1-00:00:00: -t 1-00:00:00; OmegaConf 1-00:00:00, ruamel.yaml 1-00:00:00
#   "24:00:00": -t 24:00:00; OmegaConf 24:00:00, ruamel.yaml 24:00:00
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    dask-jobqueue==0.9.0 dask==2026.8.0 distributed==2026.8.0 pyyaml==6.0.4 omegaconf==2.4.0 ruamel.yaml==0.19.1
mkdir "$folder/dask"
cat >"$folder/seen.py" <<'PYTHON'
import re
import sys
from pathlib import Path

from dask_jobqueue import SLURMCluster
from omegaconf import OmegaConf
from ruamel.yaml import YAML

file = Path("dask/jobqueue.yaml")
asked = re.search(r"^#SBATCH (-t .*)$", SLURMCluster().job_script(), re.MULTILINE)[1]
omega = OmegaConf.load(file).jobqueue.slurm.walltime
ruamel = YAML(typ="safe").load(file)["jobqueue"]["slurm"]["walltime"]
print(f"{sys.argv[1]}: {asked}; OmegaConf {omega}, ruamel.yaml {ruamel}")
PYTHON
cd "$folder"
for limit in 08:00:00 10:00:00 24:00:00 1-00:00:00 '"24:00:00"'; do
    printf 'jobqueue:\n  slurm:\n    cores: 8\n    memory: 64GB\n    walltime: %s\n' "$limit" >dask/jobqueue.yaml
    DASK_CONFIG="$folder/dask" ./venv/bin/python -W ignore seen.py "$limit"
done >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
08:00:00: -t 08:00:00; OmegaConf 08:00:00, ruamel.yaml 08:00:00
10:00:00: -t 36000; OmegaConf 36000, ruamel.yaml 10:00:00
24:00:00: -t 86400; OmegaConf 86400, ruamel.yaml 24:00:00
1-00:00:00: -t 1-00:00:00; OmegaConf 1-00:00:00, ruamel.yaml 1-00:00:00
"24:00:00": -t 24:00:00; OmegaConf 24:00:00, ruamel.yaml 24:00:00
SEEN
