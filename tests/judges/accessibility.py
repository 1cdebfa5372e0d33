"""Every page in Chromium, wide and narrow, light and dark, before axe-core."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any

import coopt
from coopt.report.fronts.files import front_page
from tests.judges.judge import Bench, Judge, NotInstalledError, agree
from tests.pages import chromium
from tests.pages.planner import DRAWN, SETTLED, prefer, resize, until
from tests.pages.written import write_reports
from tests.report.test_fronts import rail_only_study
from tests.serve.conftest import served

CONFIG = Path(__file__).parents[2] / "docs" / "site" / "mkdocs.yml"
WIDTHS, SCHEMES = (1280, 390), ("light", "dark")
POINTS = 6
VIOLATIONS = """
const [done] = [...arguments].slice(-1);
axe.run(document, {resultTypes: ['violations']}).then(({violations}) =>
  done(violations.map(({id, nodes}) => `${id} at ${nodes[0].target.join(' ')}`)));
"""
CUT = """
return [...document.querySelectorAll('table')].filter((one) => one.checkVisibility()
  && (one.parentElement.scrollWidth > one.parentElement.clientWidth + 1
    || one.getBoundingClientRect().right > innerWidth + 1)).map((one) => `cut: ${one.innerText.slice(0, 40)}`)
"""
"""Tables of which one does not see every column."""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing of what is asked for."""


@contextmanager
def _host(folder: Path) -> Iterator[str]:
    """The address at which the files of a folder are served."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _written(folder: Path) -> list[str]:
    """The pages of docs/, of plans and of a front, by their path."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    build(load_config(str(CONFIG), site_dir=str(folder)))
    write_reports(folder)
    study = rail_only_study()
    (folder / "front.html").write_text(front_page(coopt.pareto(study, POINTS), study), "utf-8")
    return [str(path.relative_to(folder)) for path in sorted(folder.rglob("*.html"))]


def _without_violations(bench: Bench) -> str:
    if why := chromium.why_not():
        raise NotInstalledError(why)
    axe = (bench.folder / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
    folder = bench.folder / "pages"
    folder.mkdir()
    faults, count = [], 0
    pages = _written(folder)
    with chromium.started() as browser, _host(folder) as host, served(workers=1) as planner:
        browser.set_script_timeout(120)
        addresses = [(f"{host}/{page}", DRAWN) for page in pages]
        addresses.append((f"http://127.0.0.1:{planner.port}/", SETTLED))
        for (address, ready), width, scheme in product(addresses, WIDTHS, SCHEMES):
            resize(browser, width)
            prefer(browser, scheme)
            browser.get(address)
            until(browser, ready)
            browser.execute_script(axe)
            found = browser.execute_async_script(VIOLATIONS)
            cut = browser.execute_script(CUT) if width == min(WIDTHS) else []
            faults += [f"{address}, {width} px, {scheme}: {one}" for one in (*found, *cut)]
            count += 1
    return agree(faults, count, "pages")


JUDGES = (
    Judge(
        program="axe-core",
        judged="pages of the planner, plans, fronts and docs/: accessible, wide and narrow, light and dark",
        packages=("axe-core@4.14.1",),
        registry="npm",
        read=_without_violations,
    ),
)
