"""Answers in a notebook: one line as text, tables as HTML and as data frames, and figures."""

import base64
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbformat
import pytest
from nbclient import NotebookClient

import coopt
from coopt.instance import texts
from coopt.instance.texts import frame, html
from coopt.plan import schema
from tests.conftest import ask
from tests.kinds import solved

ROOT = Path(__file__).parents[2]
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    instance = coopt.load("instances/tiny-64.toml")
    plan = coopt.solve(instance)
    return {
        "instance": instance,
        "plan": plan,
        "front": coopt.pareto(instance),
        "why": coopt.explain(instance, plan),
        "verdict": coopt.verify(instance, plan),
    }


def test_every_answer_is_a_line_of_text(answers: dict[str, Any]) -> None:
    """Every public name is there."""
    for name, held in {
        "instance": ("Instance('tiny-64', ", "64 x h100-sxm"),
        "plan": ("Plan('tiny-64', optimal, ", "181,888 USD", "1 part"),
        "front": ("Front('tiny-64', capex, ", "2 of 2 points"),
        "why": ("Explanation('tiny-64', optimal, ",),
        "verdict": ("Verdict(accepted, ",),
    }.items():
        assert repr(answers[name]).startswith(held[0])
        assert all(figure in repr(answers[name]) for figure in held)
    assert all(str(one) == repr(one) and len(repr(one)) < 100 for one in answers.values())
    assert all(getattr(coopt, name) and name in dir(coopt) for name in coopt.__all__)


def test_every_answer_shows_itself_in_a_notebook(answers: dict[str, Any]) -> None:
    for one in answers.values():
        assert one._repr_html_().startswith("<div><p><strong>")
    assert "<td>cx7-400g</td><td>nic</td><td>64</td><td>1,750</td><td>112,000</td>" in answers["plan"]._repr_html_()
    assert html("<b>", ["a & b"], [[{"x<y": None, "z": True}]]) == (
        "<div><p><strong>&lt;b&gt;</strong></p><p>a &amp; b</p><table><thead><tr><th>x&lt;y</th><th>z</th></tr></thead>"
        "<tbody><tr><td></td><td>yes</td></tr></tbody></table></div>"
    )


def test_a_plan_is_drawn_with_its_own_colours(answers: dict[str, Any]) -> None:
    instance, plan = answers["instance"], answers["plan"]
    before = plan.model_dump_json(by_alias=True)
    picture = coopt.draw("instances/tiny-64.toml", plan)
    (content,) = re.findall('src="data:image/svg\\+xml;base64,([^"]+)"', picture._repr_html_())
    image = ElementTree.fromstring(base64.b64decode(content))
    texts_shown = [one.text for one in image.iter("{http://www.w3.org/2000/svg}text")]
    assert f"{plan.design.hb_domain.count} HB domains" in texts_shown
    style = image.findtext("{http://www.w3.org/2000/svg}style") or ""
    rules = "".join(re.findall(r"\.plan [^{]*\{[^}]*\}", style))
    assert {*re.findall(r"var\((--\w+)\)", rules)} <= {*re.findall(r"(--\w+):", style)}
    assert plan.model_dump_json(by_alias=True) == before
    with pytest.raises(coopt.InstanceError, match="of another instance"):
        coopt.draw(coopt.load("instances/tiny-64.toml", {"cluster.gpus": 128}), plan)
    impossible = coopt.load("instances/infeasible-deadline.toml")
    with pytest.raises(coopt.InstanceError, match=r"infeasible-deadline.toml: .* infeasible"):
        coopt.draw(impossible, coopt.solve(impossible))
    assert instance == coopt.load("instances/tiny-64.toml")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_become_data_frames(answers: dict[str, Any], library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "LIBRARIES", (library,))
    plan = answers["plan"]
    assert sum(plan.to_frame()["usd"]) == plan.cost.capex_usd
    assert list(plan.to_frame("mappings")["tp"]) == [plan.workloads[0].mapping.tp]
    assert sum(plan.to_frame("breakdown")["time_s"]) == pytest.approx(plan.workloads[0].iteration_time_s)
    assert list(answers["front"].to_frame()["capex_usd"]) == [p.cost.capex_usd for p in answers["front"].points]
    assert len(answers["verdict"].to_frame()) == len(answers["verdict"].checks)
    for table, rows in (("bounds", "bounds"), ("rivals", "rivals"), ("prices", "prices")):
        assert len(answers["why"].to_frame(table)) == len(getattr(answers["why"], rows))
    assert type(plan.to_frame()).__module__.partition(".")[0] == library


@pytest.mark.parametrize("kind", ["turns", "phased", "fleet", "sites", "direct"])
def test_every_kind_of_plan_is_shown_and_drawn(kind: str) -> None:
    question, plan = solved(kind)
    assert coopt.draw(question, plan)._repr_html_().startswith("<figure")
    assert len(plan.to_frame("mappings")) == len(plan.runs)
    assert repr(plan).endswith("parts)" if len(plan.parts) > 1 else "1 part)")
    assert plan.plot()._repr_png_().startswith(PNG)
    shown = plan._repr_html_()
    assert ("<table>" in shown, shown.count('<img alt="')) == (True, 1)


def test_a_front_is_drawn(answers: dict[str, Any]) -> None:
    figure = answers["front"].plot()
    (axes,) = figure.axes
    times = [point.best.workloads[0].iteration_time_s for point in answers["front"].points]
    assert list(axes.lines[0].get_xdata()) == times
    assert axes.get_xlabel() == "iteration time (s)"
    assert figure._repr_png_().startswith(PNG)


def test_points_of_a_front_have_seconds_and_days() -> None:
    bound = {"max_iteration_time_s": None, "train_days": 30.0, "train_tokens": 1e11}
    dated = coopt.pareto(ask(**{f"workload__0__{key}": value for key, value in bound.items()}), points=3)
    table = dated.to_frame()
    assert list(table["days"]) == [point.days for point in dated.points]
    assert list(table["days"] / table["pace"]) == pytest.approx([30.0] * len(dated.points))
    (axes,) = dated.plot().axes
    assert list(axes.lines[0].get_xdata()) == list(table["days"])
    assert axes.get_xlabel().startswith("training time (days")
    instance = ask(workload__0__max_iteration_time_s=100.0)
    one = instance.workload[0].model_dump(mode="json")
    several = coopt.pareto(ask(workload=[one, one | {"name": "other"}]), points=3)
    table = several.to_frame()
    assert "days" not in table
    for place, name in enumerate(run.name for run in several.points[0].best.workloads):
        seconds = [point.best.workloads[place].iteration_time_s for point in several.points]
        assert list(table[f"{name}.iteration_time_s"]) == seconds
    (axes,) = several.plot().axes
    assert list(axes.lines[0].get_xdata()) == [point.pace for point in several.points]


def test_a_front_of_whole_plans_names_where_each_workload_runs() -> None:
    instance, _ = solved("partition")
    front = coopt.pareto(instance, points=3)
    table = front.to_frame()
    for name in (workload.name for workload in instance.workload):
        seconds = [run.iteration_time_s for point in front.points for run in point.plan.runs if run.name == name]
        assert list(table[f"{name}.iteration_time_s"]) == seconds
        assert f"<th>{name}.iteration_time_s</th>" in front._repr_html_()


def test_the_notebook_of_the_docs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    content = nbformat.read(ROOT / "docs" / "notebook.ipynb", as_version=4)
    done = NotebookClient(content, timeout=120, resources={"metadata": {"path": str(ROOT)}}).execute()
    shown = [output["data"] for cell in done.cells for output in cell.get("outputs", ()) if "data" in output]
    assert sum("image/png" in one for one in shown) == 2
    assert sum("text/html" in one for one in shown) >= 5
    assert any("data:image/svg+xml" in one.get("text/html", "") for one in shown)


def test_what_is_missing_is_named(answers: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(coopt.InstanceError, match=r"table = 'bills'.* 'bill', 'mappings', 'breakdown'"):
        answers["plan"].to_frame("bills")
    for module in (texts, schema):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(coopt.InstanceError, match=r"pandas .* polars .*coopt\[jupyter\]"):
        frame([{"a": 1}])
    with pytest.raises(coopt.InstanceError, match="matplotlib"):
        answers["plan"].plot()


def test_functions_that_rooms_are_named_after_are_called(answers: dict[str, Any], tmp_path: Any) -> None:
    import coopt.report.plan
    import coopt.traffic.flows

    page = coopt.report(answers["instance"], answers["plan"], tmp_path / "page.html", front=answers["front"])
    assert (tmp_path / "page.html").read_text("utf-8") == page
    (training,) = coopt.traffic(answers["instance"], answers["plan"]).workloads
    assert training.talking_pairs > 0
    assert coopt.diff(answers["plan"], answers["plan"]).changes == ()
    assert set(coopt.catalog()) >= {"gpu", "switch"}
    assert coopt.catalog("nic")["cx7-400g"].gbit_s == 400
    assert coopt.schema()["title"] == "Instance"
    for call, asked in ((coopt.catalog, "nics"), (coopt.schema, "plans")):
        with pytest.raises(coopt.InstanceError, match=f"'{asked}', needs one of"):
            call(asked)
