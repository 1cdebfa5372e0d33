"""A question is edited on the planner's page as a form and as text, in a headless Chromium."""

import json

from coopt.instance.schema import Instance
from tests.pages.planner import NUMBER, put, put_text, question, settled, text_of, until, until_asked
from tests.serve.conftest import INSTANCES, TINY


def test_a_mistake_is_told_at_its_field_and_the_answer_stays(planner):
    browser = planner()
    before = text_of(browser, ".decision")
    put(browser, "#at-workload-0-global_batch", "many")
    until(browser, "return document.querySelector('#at-workload-0-global_batch-says .wrong') !== null")
    sentence = text_of(browser, "#at-workload-0-global_batch-says")
    assert sentence.startswith("workload[0].global_batch = 'many': ")
    assert text_of(browser, "#complaints") == sentence
    assert browser.execute_script("return document.querySelector('#at-workload-0-global_batch').ariaInvalid") == "true"
    assert text_of(browser, ".decision") == before
    assert browser.execute_script("return document.getElementById('answer').classList.contains('stale')")
    put(browser, "#at-workload-0-global_batch", "64")
    settled(browser)
    assert [text_of(browser, place) for place in ("#complaints", "#wrong", "#progress")] == ["", "", ""]


def test_typed_text_completes_names_and_shows_the_line_that_is_wrong(form):
    from selenium.webdriver.common.keys import Keys

    browser = form()
    browser.find_element("id", "tab-text").click()
    browser.execute_script(
        "const area = document.getElementById('toml'), at = area.value.indexOf('[network]') + '[network]\\n'.length;"
        "area.focus(); area.setSelectionRange(at, at)"
    )
    area = browser.find_element("id", "toml")
    area.send_keys("char")
    assert text_of(browser, "#completions li strong") == "charge"
    area.send_keys(Keys.ENTER)
    area.send_keys('"')
    assert text_of(browser, "#completions").split() == ["loads", "ratio"]
    area.send_keys("rat", Keys.TAB, '"', Keys.ENTER)
    until_asked(browser, 'charge = "ratio"\n')
    area.send_keys("max_tiers = = 2", Keys.ENTER)
    until(browser, "return document.querySelector('.wrong-line') !== null")
    line = int(text_of(browser, ".wrong-line"))
    assert question(browser).splitlines()[line - 1] == "max_tiers = = 2"
    assert f"not TOML, line {line}, column" in text_of(browser, "#complaints")


COMPLETIONS = """
const [before, done] = arguments;
const [{ completions }, { Form }, start] = await Promise.all([
  import('/page/editor.js'), import('/page/schema.js'), fetch('/start').then((one) => one.json())]);
const found = completions(new Form(start.schema, start.catalog), before);
done([found.word, found.options.map((one) => one.name)]);
"""


PLACES = [
    ('[cluster]\ngpu = "h1', "h1", "h100-sxm"),
    ('[network]\nswitches = ["64x400g", "qm', "qm", "qm9700"),
    ('[network]\nswitches = [\n  "64x400g", # half\n  "', "", "qm9700"),
    ('[[workload]]\nname = "a"\nmodel = "', "", "gpt-1t"),
    ("[[workload]]\nmod", "mod", "model"),
    ("[workload.mapping]\nzero = [0, ", "", "3"),
    ("[workload.options]\n", "", "dp_mode"),
    ("[shar", "shar", "sharing.most_products"),
    ('[objective]\nminimize = "capex"\ninc', "inc", "include"),
]


def test_completions_know_where_they_are(form):
    browser = form()
    script = f"(async () => {{ {COMPLETIONS} }})()".replace("arguments", "given")
    script = script.replace("(async () =>", "const given = [...arguments]; (async () =>")
    for before, word, name in PLACES:
        found, names = browser.execute_async_script(script, before)
        assert (found, name in names) == (word, True), before


def test_a_choice_in_the_form_is_in_the_text(form):
    browser = form()
    browser.execute_script("[...document.querySelectorAll('.chip')].find((one) => one.innerText === 'clos').click()")
    until(browser, f"return sessionStorage.getItem('coopt-question') !== {json.dumps(TINY)}")
    fabrics = json.loads(
        next(line for line in question(browser).splitlines() if line.startswith("fabrics")).split("=")[1]
    )
    before = json.loads(next(line for line in TINY.splitlines() if line.startswith("fabrics")).split("=")[1])
    assert set(fabrics) ^ set(before) == {"clos"}
    assert [line for line in TINY.splitlines() if "#" in line] == [
        line for line in question(browser).splitlines() if "#" in line
    ]


def test_a_number_may_be_a_list_or_a_range_or_have_commas(form):
    browser, field = form(), "#at-cluster-gpus"
    assert browser.execute_script("return document.querySelector(arguments[0]).value", field) == "64"
    for typed, written in (
        ("32, 64", "gpus = [32, 64]"),
        ("32 to 96 by 32", "gpus = {least = 32, most = 96, step = 32}"),
        ("1,024", "gpus = 1024"),
        ("96", "gpus = 96"),
    ):
        put(browser, field, typed)
        until(browser, f"return sessionStorage.getItem('coopt-question').includes('{written}')")
        until(browser, f"return document.querySelector('{field}').value === '{typed.replace('1,0', '10')}'")
        assert text_of(browser, "#complaints") == ""


def test_a_bound_is_refused_at_its_slider_as_in_the_form(form):
    """Once emptied it goes away, and can come back; it is called after the workload as that is named now."""
    browser, says = form(), NUMBER.replace("number", "says")
    for typed, said in (
        ("0,7", "'0,7': needs a number"),
        ("15 M", "'15 M': needs a number"),
        ("-1", "-1: needs a number above 0"),
    ):
        put(browser, NUMBER, typed)
        until(browser, f"return document.querySelector('{says}').innerText !== ''")
        assert said in text_of(browser, says)
        assert text_of(browser, says) == text_of(browser, "#at-workload-0-max_iteration_time_s-says")
        assert browser.execute_script(f"return document.querySelector('{NUMBER}').value") == typed
        put(browser, NUMBER, "0.9")
        until(browser, f"return document.querySelector('{says}').innerText === ''")
    put(browser, NUMBER, "")
    until(browser, "return document.querySelector('#wrong li') !== null")
    assert "max_iteration_time_s" not in question(browser)
    put(browser, NUMBER, "0.8")
    until_asked(browser, "max_iteration_time_s = 0.8")
    put(browser, "#at-workload-0-name", "fine tuning")
    until(browser, "return document.querySelector('.bound label').innerText.startsWith('fine tuning ')")


def test_a_day_has_a_slider_of_days(form):
    browser = form()
    dated = TINY.replace("max_iteration_time_s = 1.0", "train_tokens = 1e11\nby = 2027-03-20")
    put_text(browser, dated.replace("gpus = 64", "gpus = 64\nstart = 2027-01-04"))
    until(browser, "return document.querySelector('#bound-workload-0-by-slider') !== null")
    assert browser.execute_script("return document.querySelector('#bound-workload-0-by-number').value") == "2027-03-20"
    slider = "document.querySelector('#bound-workload-0-by-slider')"
    assert browser.execute_script(f"return {slider}.getAttribute('aria-valuetext')") == "75 days"
    put(browser, "#bound-workload-0-by-slider", "1000")
    until_asked(browser, "by = 2027-08-17")
    put(browser, "#bound-workload-0-by-number", "2027-02-01")
    until_asked(browser, "by = 2027-02-01")
    assert text_of(browser, "#complaints") == ""


def test_bounds_name_the_phases_in_which_they_hold_and_sites_have_sliders(form):
    browser = form(390)
    put_text(browser, (INSTANCES / "fleet-3-phases-2-sites.toml").read_text("utf-8"))
    until(browser, "return document.querySelectorAll('.bound').length > 4")
    labels = browser.execute_script("return [...document.querySelectorAll('.bound label')].map((one) => one.innerText)")
    bounds = [
        ("gpt-22b", "2027, 2028"), ("llama3-70b", "2028"), ("mixtral", "2028"), ("gpt-175b", "2030"),
        ("llama3-70b", "2027"), ("gpt-22b", "2030"), ("llama3-70b", "2030"), ("mixtral", "2030"),
    ]  # fmt: skip
    timed = [f"{name}, {years} iteration time at most" for name, years in bounds]
    assert labels == [*timed, *(f"{site} power at most" for site in ("fjord", "valley"))]
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    put(browser, "#bound-site-1-power_mw-number", "3.5")
    until_asked(browser, "power_mw = 3.5")


def test_a_mistake_is_told_by_the_answer_with_a_way_to_its_field(form):
    browser = form(390)
    browser.execute_script("document.getElementById('tab-text').click()")
    put(browser, "#at-cluster-gpus", "many")
    until(browser, "return document.querySelector('#wrong li') !== null")
    assert "= 'many': " in text_of(browser, "#wrong")
    browser.find_element("css selector", "#wrong button").click()
    assert browser.execute_script("return document.activeElement.id") == "at-cluster-gpus"
    assert browser.execute_script("return document.activeElement.checkVisibility()")


def test_the_form_has_a_section_for_every_table(form):
    browser = form()
    browser.find_element("id", "tab-form").click()
    shown = browser.execute_script(
        "return [...document.querySelectorAll('.section-name')].map((one) => one.textContent)"
    )
    assert set(shown) == {*Instance.model_fields, "Name and description"} - {
        "schema_",
        "name",
        "description",
        "catalog",
    }
