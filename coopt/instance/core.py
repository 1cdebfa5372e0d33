"""A core that all islands of a partition share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from coopt.instance.base import Name, Positive, Table


class Core(Table):
    """Switches between islands, and what islands must be able to send through them."""

    switch: Annotated[Name, Field(description="name of a listed switch, which the core consists of")]
    gbit_s_per_gpu: Annotated[
        Positive, Field(description="what every GPU that trains can send to other islands (Gbit/s)")
    ]
    optic: Annotated[
        Name | None, Field(description="name of the listed optic at both ends of its links; chosen where left out")
    ] = None
