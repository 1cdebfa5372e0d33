#!/usr/bin/env bash
# A configuration with a misspelt key is read, and the default is trained.
#
# Versions   megatron-core==0.19.2 (its ConfigContainerBase is what Megatron Bridge 0.6.2 reads YAML
#            with), omegaconf==2.4.0, pyyaml==6.0.4, on Python 3.12 (PYTHON names one where python3 is
#            older)
# Expected   `from_yaml` stops at a key that its class does not have, as argparse does at an unknown
#            argument and as `from_dict` does.
# Behaviour  `from_yaml` is lenient by default and `from_dict` strict: the misspelt key is dropped with
#            a warning, and the default stands. In a configuration of Megatron Bridge,
#            `tensor_parallel_size: 8` of a model thus trains with TP 1. Only
#            `mode=InstantiationMode.STRICT` stops.
# Output seen
#   from_yaml: random seed 1234
#   from_yaml, strict: InstantiationException
#   from_dict: InstantiationException
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    megatron-core==0.19.2 omegaconf==2.4.0 pyyaml==6.0.4
cat >"$folder/seen.py" <<'PYTHON'
from dataclasses import dataclass, field

import yaml
from megatron.training.config import RNGConfig
from megatron.training.config.container import ConfigContainerBase
from megatron.training.config.instantiate_utils import InstantiationException, InstantiationMode, target_allowlist


@dataclass(kw_only=True)
class Config(ConfigContainerBase):
    rng: RNGConfig = field(default_factory=RNGConfig)


SLIP = {
    "_target_": "__main__.Config",
    "rng": {"_target_": "megatron.training.config.RNGConfig", "sede": 5},
}
target_allowlist.add_exact("__main__.Config")


def seed(read):
    try:
        return f"random seed {read().rng.seed}"
    except InstantiationException as error:
        return type(error).__name__


with open("slip.yaml", "w") as file:
    yaml.safe_dump(SLIP, file)
print("from_yaml:", seed(lambda: Config.from_yaml("slip.yaml")))
print("from_yaml, strict:", seed(lambda: Config.from_yaml("slip.yaml", mode=InstantiationMode.STRICT)))
print("from_dict:", seed(lambda: Config.from_dict(SLIP)))
PYTHON
cd "$folder"
./venv/bin/python -W ignore seen.py | grep "^from_" >seen.txt  # without what is logged there
cat seen.txt
diff seen.txt - <<'SEEN'
from_yaml: random seed 1234
from_yaml, strict: InstantiationException
from_dict: InstantiationException
SEEN
