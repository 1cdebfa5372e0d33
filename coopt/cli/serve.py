"""`coopt serve`: the planner's page."""

from __future__ import annotations

import click

from coopt.cli.terminal import TIME_LIMIT, answer, note
from coopt.instance.listings import both


@click.command()
@click.argument("instance", required=False)
@click.option("--port", metavar="P", type=click.IntRange(0, 65535), default=8017, show_default=True,
              help="Port to listen on; 0 takes a free one.")  # fmt: skip
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True,
              help="Address to listen on; one that others reach gets a random token.")  # fmt: skip
@click.option(
    "--workers", metavar="N", type=click.IntRange(1, 256), help="Searches side by side.  [one a core, 2 to 4]"
)
@click.option("--time-limit", "limit_s", metavar="S", type=TIME_LIMIT, default=60.0, show_default=True,
              help="Most time of one search.")  # fmt: skip
@click.option("--open", "opened", is_flag=True, help="Open the page in a browser.")
def command(instance: str | None, port: int, host: str, workers: int | None, limit_s: float, opened: bool) -> None:
    """Serve the planner's page on this machine.

    A question is edited in a browser, and its answer follows. Begins with INSTANCE, or with the question that
    `coopt new` writes. Prints the address; Ctrl-C ends it. What is edited stays in the browser: no file is written, and
    none is read but INSTANCE and the catalog files it names.
    """
    from importlib.util import find_spec

    from coopt.instance.errors import InstanceError

    missing = [name for name in ("starlette", "tomlkit", "uvicorn", "jinja2") if find_spec(name) is None]
    if missing:
        are = "are" if len(missing) > 1 else "is"
        raise InstanceError(f"serve: {both(missing)} {are} not installed, needs `pip install 'coopt[serve]'`")
    from coopt.serve.running import desk_of, serve

    def told(address: str) -> None:
        answer(address)
        note("the page is served at this address until Ctrl-C")
        if opened:
            click.launch(address)

    serve(desk_of(instance, host, workers, limit_s), port, told)
    note("the page is served no longer")
