"""How many tokens a model needs for a loss, and which size is best for a compute: published laws of dense models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from coopt.instance.base import Entry, Positive

FLOP_PER_PARAMETER = 6.0  # of a token, forward and backward, as the laws count compute


class ScalingLaw(Entry):
    r"""The loss of N parameters that were trained on D tokens (Hoffmann et al. 2022, arXiv 2203.15556).

    .. math:: L = e + \frac{a}{N^\alpha} + \frac{b}{D^\beta}
    """

    e: Annotated[Positive, Field(description="loss that no training goes below (nats a token)")]
    a: Annotated[Positive, Field(description="what a small model adds: a / N^alpha")]
    b: Annotated[Positive, Field(description="what few tokens add: b / D^beta")]
    alpha: Annotated[Positive, Field(description="power of the parameters")]
    beta: Annotated[Positive, Field(description="power of the tokens")]

    def loss(self, parameters: float, tokens: float) -> float:
        """The loss after a training (nats a token)."""
        return float(self.e + self.a / parameters**self.alpha + self.b / tokens**self.beta)

    def tokens(self, parameters: float, loss: float) -> float:
        """Tokens that take a model to a loss.

        Raises
        ------
        ValueError
            When no number of tokens does.
        """
        left = loss - self.e - self.a / parameters**self.alpha
        if left <= 0:
            raise ValueError(
                f"loss = {loss:g}: by {self.name} {parameters:.4g} parameters never go below "
                f"{self.e + self.a / parameters**self.alpha:.4g}, needs a higher loss or a larger model"
            )
        return float((self.b / left) ** (1.0 / self.beta))

    def best_for_compute(self, flop: float) -> tuple[float, float]:
        r"""Parameters and tokens of least loss for a compute of 6 N D.

        .. math:: N = \left(\frac{\alpha a}{\beta b}\right)^{1/(\alpha+\beta)} \left(C/6\right)^{\beta/(\alpha+\beta)}
        """
        both, pairs = self.alpha + self.beta, flop / FLOP_PER_PARAMETER
        parameters = (self.alpha * self.a / (self.beta * self.b)) ** (1.0 / both) * pairs ** (self.beta / both)
        return parameters, pairs / parameters
