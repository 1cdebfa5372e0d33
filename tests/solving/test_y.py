import coopt, pytest
from collections import Counter
from hypothesis import HealthCheck, given, settings, assume
from tests.solving.fleets import ENDS, fleets
from tests.solving.fleet_oracle import TooManyError, enumerated
from tests.solving.test_fleets import agrees_with_enumeration
slow = settings(suppress_health_check=list(HealthCheck), deadline=None, database=None)
seen = Counter()
@settings(slow, max_examples=20)
@given(fleets(many_sided=ENDS, sites=(0, 0, 2), doubts=True))
def test_a(instance):
    value = agrees_with_enumeration(instance)
    seen['infeasible' if value == float('inf') else 'ok'] += 1
    if value < float('inf'):
        plan = coopt.solve(instance)
        v = coopt.verify(instance, plan)
        assert v.accepted, v.failures
        mixed = any(t.optic_below for p in plan.parts if p.design for t in p.design.fabric.tier)
        seen['mixed'] += mixed
        seen['two tiers'] += any(p.design.fabric.tiers > 1 for p in plan.parts if p.design)
    print(seen)
