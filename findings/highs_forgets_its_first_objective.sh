#!/usr/bin/env bash
# HiGHS optimises by priority, fewest GPUs first, and buys ten where seven do.
#
# Versions   highspy==1.16.0
# Expected   Two objectives with priorities and without blending are lexicographic: the fewest GPUs are 7, and among
#            plans of 7 GPUs the second objective picks one. Tolerances left alone allow no loss, as in Gurobi and
#            CPLEX, where both are 0 or close to it. Blended objectives left alone weigh 1.
# Behaviour  Tolerances are -1, and a negative one means that no row holds the objective once it is found: all but the
#            last count for nothing. The weight is 0, so that an objective that has only coefficients and a priority is
#            no objective at all. Priorities themselves count for nothing until blend_multi_objectives is off. The
#            status is optimal; of tolerances a line of the log warns, of weights and priorities none. Set weight 1,
#            abs_tolerance 0 and rel_tolerance 0.
# Output seen
#   left alone: weight 0, tolerances -1 and -1, blended True
#   weight 1, blended: kOptimal, 10 GPUs
#   by priority: kOptimal, 10 GPUs
#   by priority, tolerances 0: kOptimal, 7 GPUs
#   fewest alone, weight left alone: kOptimal, 20 GPUs
#   fewest alone, weight 1: kOptimal, 7 GPUs
#   warned of in the log: absolute tolerance
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check highspy==1.16.0
cat >"$folder/seen.py" <<'PYTHON'
import re

import highspy

FEWEST, CHEAPEST = (1.0, 1.0), (-1.0, 1.0)


def gpus(*objectives, **settings):
    """GPUs of two kinds, ten of each at most and seven in all at least; the first objective has the first priority."""
    highs = highspy.Highs()
    highs.setOptionValue("log_to_console", False)
    highs.setOptionValue("log_file", "log.txt")
    kinds = [highs.addIntegral(lb=0, ub=10) for _ in range(2)]
    highs.addConstr(kinds[0] + kinds[1] >= 7)
    highs.setOptionValue("blend_multi_objectives", settings.pop("blend", False))
    for place, coefficients in enumerate(objectives):
        objective = highspy.HighsLinearObjective()
        objective.coefficients, objective.priority = list(coefficients), len(objectives) - place
        for name, value in settings.items():
            setattr(objective, name, value)
        highs.addLinearObjective(objective)
    highs.run()
    return f"{highs.getModelStatus().name}, {sum(highs.val(kind) for kind in kinds):.0f} GPUs"


alone = highspy.HighsLinearObjective()
_, blended = highspy.Highs().getOptionValue("blend_multi_objectives")
tolerances = f"{alone.abs_tolerance:g} and {alone.rel_tolerance:g}"
print(f"left alone: weight {alone.weight:g}, tolerances {tolerances}, blended {blended}")
print("weight 1, blended:", gpus(FEWEST, CHEAPEST, weight=1, blend=True))
print("by priority:", gpus(FEWEST, CHEAPEST, weight=1))
print("by priority, tolerances 0:", gpus(FEWEST, CHEAPEST, weight=1, abs_tolerance=0, rel_tolerance=0))
print("fewest alone, weight left alone:", gpus(FEWEST))
print("fewest alone, weight 1:", gpus(FEWEST, weight=1))
warned = {re.search("(weight|priority|absolute tolerance) being", line) for line in open("log.txt") if "WARN" in line}
print("warned of in the log:", *(found[1] if found else "something else" for found in warned))
PYTHON
cd "$folder"
./venv/bin/python seen.py | grep -vE "^(Running HiGHS|Includes)" >seen.txt
cat seen.txt
diff seen.txt - <<'SEEN'
left alone: weight 0, tolerances -1 and -1, blended True
weight 1, blended: kOptimal, 10 GPUs
by priority: kOptimal, 10 GPUs
by priority, tolerances 0: kOptimal, 7 GPUs
fewest alone, weight left alone: kOptimal, 20 GPUs
fewest alone, weight 1: kOptimal, 7 GPUs
warned of in the log: absolute tolerance
SEEN
