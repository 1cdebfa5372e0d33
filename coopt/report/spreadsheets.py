"""The bill of materials for spreadsheets."""

from __future__ import annotations

import csv
import io

from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance
from coopt.plan.identity import check_same_question
from coopt.plan.schema import Item, Plan


def bill_csv(instance: Instance, plan: Plan) -> str:
    """One line for each item of the bill, in USD and W; lines sum to the cost of the plan.

    Raises
    ------
    InstanceError
        When the plan is of another instance, or builds nothing.
    """
    check_same_question(instance, plan)
    if plan.cost is None:
        raise InstanceError(f"{instance.name}: the plan is {plan.status} and has no bill, needs a plan that builds one")
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(Item.model_fields)
    table.writerows(tuple(getattr(item, name) for name in Item.model_fields) for item in plan.cost.items)
    return text.getvalue()
