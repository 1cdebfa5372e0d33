"""Keep what was computed once for whatever asks for it again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


_UNKNOWN = object()


def kept(key: Callable[..., Hashable] | None = None) -> Callable[[Method], Method]:
    """Let a method compute once for each key, of all that its answer depends on.

    Parameters
    ----------
    key
        The key of an object and the arguments of its method; all of these where left out.
    """

    def decorate(method: Method) -> Method:
        name = f"_kept_{method.__name__}"

        @wraps(method)
        def kept_answer(self: Any, *args: Any) -> Any:
            asked = args if key is None else key(self, *args)
            answers = self.__dict__.get(name)
            if answers is None:
                answers = self.__dict__.setdefault(name, {})
            answer = answers.get(asked, _UNKNOWN)
            if answer is _UNKNOWN:
                answer = answers[asked] = method(self, *args)
            return answer

        return cast(Method, kept_answer)

    return decorate
