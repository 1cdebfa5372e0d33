"""Fields of a document in the reference: name, type without `Annotated`, and what its description
says.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from griffe import (
    Attribute,
    Class,
    Docstring,
    Expr,
    ExprCall,
    ExprKeyword,
    ExprSubscript,
    ExprTuple,
    Extension,
)


class Fields(Extension):
    """List the fields of a class in its docstring."""

    def on_class(self, *, cls: Class, **_: Any) -> None:
        """Add a section `Attributes`."""
        fields = [
            one for one in cls.attributes.values() if one.is_public and one.annotation is not None
        ]
        said = cls.docstring.value if cls.docstring else ""
        if fields:
            lines = [line for one in fields for line in _lines(one)]
            text = "\n".join([said, "", "Attributes", "----------", *lines])
            cls.docstring = Docstring(text, parent=cls, parser="numpy")


def _lines(field: Attribute) -> Iterator[str]:
    whole, text = field.annotation, field.docstring.value if field.docstring else ""
    if isinstance(whole, ExprSubscript) and str(whole.left) == "Annotated":
        assert isinstance(whole.slice, ExprTuple)
        whole, *rest = whole.slice.elements
        text = text or next((found for part in rest if (found := _description(part))), "")
    yield f"{field.name} : {whole}"
    yield f"    {text.partition(chr(10))[0]}"


def _description(part: str | Expr) -> str:
    """What `Field(description=...)` says; griffe takes a text that reads as an expression for
    one.
    """
    words = part.arguments if isinstance(part, ExprCall) else ()
    values = [
        one.value for one in words if isinstance(one, ExprKeyword) and one.name == "description"
    ]
    return next(
        (str(one) if isinstance(one, Expr) else ast.literal_eval(one) for one in values), ""
    )
