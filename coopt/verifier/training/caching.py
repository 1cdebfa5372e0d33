"""Keep what was computed once for whatever asks for it again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


def _arguments(_: object, *args: Hashable) -> Hashable:
    return args


def kept(key: Callable[..., Hashable] = _arguments) -> Callable[[Method], Method]:
    """Let a method compute once for each key, of all that its answer depends on.

    Parameters
    ----------
    key
        The key of an object and the arguments of its method; all of these where left out.
    """

    def decorate(method: Method) -> Method:
        name = f"_kept_{method.__name__}"

        @wraps(method)
        def answer(self: Any, *args: Any) -> Any:
            answers = self.__dict__.setdefault(name, {})
            asked = key(self, *args)
            if asked not in answers:
                answers[asked] = method(self, *args)
            return answers[asked]

        return cast(Method, answer)

    return decorate
