"""Templates to text."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, NamedTuple

import jinja2

from .._resources import resource_dir
from .context import ModuleContext


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """The Jinja environment over ``codegen_templates/``."""
    root = resource_dir("codegen_templates")
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (root / name).read_text(encoding="utf-8")),
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
    )


@cache
def _macros(template: str) -> Any:
    return environment().get_template(template).module


def macro(template: str, name: str, *parts: Any) -> str:
    """The text that macro ``name`` of ``template`` makes of ``parts``."""
    return str(getattr(_macros(template), name)(*parts))


def render_template(template: str, **context: Any) -> str:
    """The text of ``template``, whose variables ``context`` gives."""
    return environment().get_template(template).render(context)


@lru_cache(maxsize=4096)
def type_text(key: NamedTuple) -> str:
    """A PTO type as text; ``key`` is one of `types` and names its macro."""
    return macro("pto/types.mlir.j2", key.macro, key)  # pyright: ignore[reportAttributeAccessIssue]


def render_module(module: ModuleContext) -> str:
    """A whole ``.pto`` file."""
    return render_template("pto/module.mlir.j2", module=module)
