"""Logs of training software: which software wrote a log, what it says about the run, and how long
its iterations took.

The printed forms are data (`log_formats.toml`); a new one needs no code unless its keys mean
something that no other software prints.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from itertools import pairwise, takewhile
from statistics import median
from typing import Annotated, Any

from pydantic import Field

from coopt.instance.base import Table, one_or_many
from coopt.instance.texts import InstanceError, alternatives, both, counted

WARM_UP = 2  # iterations that load, compile and fill caches; judgement
ON = ("True", "true", "1", "MLA")
OFF = ("None", "none", "null", "False", "false", "0", "~", "", "-1", "[]")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# what may stand behind a value
DEFAULT = re.compile(r"\s*(?:\(Mcore default: .*|(?:^|(?<=\s))#.*)?$")
ENUM = re.compile(r"[A-Z]\w*[a-z]\w*\.([A-Z][A-Z0-9_]*)$|<\w+\.(\w+): .*>$")  # a value of Python
ENABLED = re.compile(r"enabled=(\w+)")  # a table of settings with a switch
ITEM = re.compile(r"(?:^|[\s\]>|])- (\S+)\s*$")  # of a list in YAML
TWO_ITEMS = re.compile(r"- ([a-z]\S*)\s*- \S+\s*$")  # lines that became one
OBJECT = re.compile(
    r"\s(?:_target_|_name_): (\S+)\s*$|\s_\w+_:(?: \S+)?\s*$"
)  # in place of a value
# the rank that a launcher puts before a line: `0: `, `[rank0]:`, `[default63]:`, `[1,3]<stdout>:`
RANK = re.compile(
    r"^\s*(?:\[?(?:rank|default|worker|node)?-?\d+(?:[,/]\d+)*\]?(?:<\w+>)?:)(?!\d)"
    r"|\[(?:rank|default)-?\d+(?:/\d+)?\]"
)
UNPRINTED = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ufffd]")
BLOCK = ("arguments", "end of arguments")  # lines around all settings of Megatron-LM
HEADER = re.compile(r"\[\w+\](?::\s*$| \w)")  # of a section of settings
CUT = re.compile(r"(?:^|[\s\"'])([a-z][a-z_0-9]*)$")  # a word that ends a line
VALUED = re.compile(r"(?:[a-z_]\w*:| \.{2,}) +\S*$")  # by itself, the value of a key
ALIKE_LETTERS = 12  # of a key that no other key of its software resembles by chance; judgement
ALIKE_SHARE = 0.88  # of letters: one or two others in such a key
MOST_DIGITS = 15  # of a whole number that means anything
BLANKED = re.compile(r" +\d+\b|\d+ +$")  # a number beside which a digit may have become a blank
SELDOM = 0.1  # share of settings that are printed so; judgement
MLLOG = ":::MLLOG "
# what cannot differ within one run
OF_ONE_RUN = (
    *("gpu", "gpus", "tp", "pp", "cp", "ep", "dp", "dp_shard", "parameters"),
    *("layers", "hidden", "heads", "seq", "experts", "padded_vocab"),
    *("micro_batch", "global_batch", "accumulation", "modules", "expert_layers"),
)
SWITCHES = (
    *("grouped", "latent", "gated", "untied", "tied_embeddings", "bf16", "fp16"),
    *("sequence_parallel", "distributed_optimizer", "torch_fsdp", "megatron_fsdp"),
    *("offloading", "ep_overlap", "wide_gradients", "precise_optimizer", "output_gate"),
    *("fp8_head", "grouped_experts", "hybrid", "graphs_on", "deepep"),
)
UNITS = ("ms", "seconds", "samples_per_s", "tokens_per_s", "gpu_tokens_per_s")


class LogFormat(Table):
    """The printed form of the logs of one software."""

    name: str
    source: str
    framework: Annotated[str, Field(description="name of the framework in facts.toml")]
    mark: Annotated[str, Field(description="pattern that tells its logs from others")]
    like: Annotated[tuple[str, ...], one_or_many] = ()
    beside: Annotated[
        tuple[str, ...], Field(description="software whose lines its logs hold as well")
    ] = ()
    step: str | None = None
    other_steps: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()
    keys: Annotated[dict[str, str], Field(default_factory=dict)]
    needed: Annotated[
        tuple[str, ...] | None, Field(description="keys, or columns, that every log lists")
    ] = None
    needs: Annotated[
        dict[str, tuple[str, ...]] | None, Field(description="keys that go with one that is set")
    ] = None
    values: Annotated[
        dict[str, tuple[str, ...]],
        Field(default_factory=dict, description="all that keys can be set to, beside none"),
    ]
    section: str = ""
    ending: Annotated[str, Field(description="how lines below a header `section` end")] = ""
    empty: Annotated[bool, Field(description="a value may be nothing at all")] = False
    defaults: Annotated[
        dict[str, str], Field(default_factory=dict, description="of keys that are left out")
    ]
    assumed: Annotated[
        dict[str, str], Field(default_factory=dict, description="of what is printed nowhere")
    ]


class FormatFile(Table):
    """All tables of `log_formats.toml`."""

    common: tuple[str, ...]
    fields: dict[str, str]
    models: dict[str, str]
    recompute: dict[str, str]
    format: tuple[LogFormat, ...]


@cache
def log_formats() -> FormatFile:
    """Return the formats included in coopt, each with what it has of others; cached."""
    text = files("coopt").joinpath("validation", "log_formats.toml").read_text("utf-8")
    table = tomllib.loads(text)
    named = {row["name"]: row for row in table["format"]}
    for row in table["format"]:
        for other in map(named.__getitem__, row.get("like", ())):
            for name in ("step", "needed", "needs", "other_steps"):
                row.setdefault(name, other.get(name))
            for name in ("keys", "values"):
                row[name] = other.get(name, {}) | row.get(name, {})
            row["sentences"] = [*row.get("sentences", ()), *other.get("sentences", ())]
    return FormatFile.model_validate(_immutable(table))


def _immutable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _immutable(entry) for key, entry in value.items() if entry is not None}
    return tuple(map(_immutable, value)) if isinstance(value, list) else value


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A value, and where it is printed."""

    value: str
    line: int
    key: str

    @property
    def is_set(self) -> bool:
        """Whether the value is other than none, null or false."""
        return self.value not in OFF


@dataclass(frozen=True, kw_only=True)
class LoggedStep:
    """A printed iteration, or the mean of those since the last one."""

    line: int
    measured: float
    unit: str
    iteration: int | None = None
    batch: str = ""
    samples: int | None = None
    tflops: float | None = None


@dataclass(frozen=True, kw_only=True)
class Log:
    """What a log says: properties of the run by name, and the median of its steady iterations."""

    format: LogFormat
    printed: Mapping[str, Printed]
    measured: float
    unit: str
    batch: str
    tflops: float | None

    @property
    def lists_all(self) -> bool:
        """Whether every setting is printed, or differs from a default that is known."""
        keys = self.format.keys
        return any(keys.get(key, key) in self.printed for key in self.format.needed or ())

    @property
    def assumed(self) -> Mapping[str, str]:
        """What its software prints nowhere, where anything of a run is printed."""
        return self.format.assumed if _settings(self.printed) else {}

    def get(self, name: str) -> str:
        """Return the value of a property; empty where it is not printed, or set to none."""
        entry = self.printed.get(name)
        return entry.value if entry is not None and entry.is_set else ""


def log_of(text: str, name: str) -> Log | None:
    """Read a log; None where no software that is known wrote it.

    Raises
    ------
    InstanceError
        If it holds no iteration, more than one run, or less than its software prints.
    """
    text = COLOUR.sub("", text)
    marked = [form for form in log_formats().format if re.search(form.mark, text)]
    if not marked:
        return None
    form = marked[0]
    known = {form.name, *form.like, *form.beside, "MLPerf"}
    if others := [other.name for other in marked if other.name not in known]:
        raise InstanceError(
            f"{name}: has lines of {both([form.name, *others])}: more than one run, needs a file"
            " for each"
        )
    lines = text.splitlines()
    if damaged := next((n for n, line in enumerate(lines, 1) if UNPRINTED.search(line)), 0):
        raise InstanceError(
            f"{name}: line {damaged} has an unprintable character, needs the log as it was printed"
        )
    events = _events(lines, name)
    printed: dict[str, Printed] = {}
    _check_lists(lines, name)
    _check_whole(form, lines, name)
    for entry, column in _all_printed(form, lines, events):
        _check_value(form, column, entry, name)
        _add(printed, column, entry, name)
    _check_spelling(form, printed, lines, name)
    _check_blanks(form, lines, name)
    _check_listed(form, printed, text, name)
    steps = _steps(form, lines, name) or _steps_of_events(events, printed)
    if not steps:
        raise InstanceError(
            f"{name}: {form.name}: no line with the time of an iteration, needs a log that has some"
        )
    for column, value in form.defaults.items() if _settings(printed) else ():
        printed.setdefault(column, Printed(value=value, line=0, key="by default"))
    return _steady(form, printed, steps, name)


def _settings(printed: Mapping[str, Printed]) -> set[str]:
    """Return the properties that are printed beside GPU and GPU count."""
    return printed.keys() - {"gpu", "gpus"}


def _keys(form: LogFormat) -> re.Pattern[str]:
    return re.compile(
        rf"(?<![\w.-])[\"']?({'|'.join(form.keys)})[\"']?(?: \.{{2,}}(?: |$)|: ?)(.*)$"
    )


def _setting(pattern: re.Pattern[str], line: str) -> re.Match[str] | None:
    """Find a key with its value; values with bars are those of iterations."""
    match = None if MLLOG in line else pattern.search(line)
    return None if match is None or " | " in match[2] else match


def _check_whole(form: LogFormat, lines: Sequence[str], name: str) -> None:
    """Refuse lines of settings that end early: within a key, before the value or behind it."""
    pattern = _keys(form)
    in_section, was_key = False, False
    for number, line in enumerate(lines, 1):
        if form.section and HEADER.search(line):
            in_section = re.search(form.section, line) is not None
        match = _setting(pattern, line)
        word = None if match is not None or VALUED.search(line) else CUT.search(line)
        ends_early = (
            word is not None
            and (was_key or "_" in word[1])
            and (len(word[1]) > 2 or word[1] == line.strip())
            and any(key.startswith(word[1]) for key in form.keys)
        )
        if match is not None:
            items = [] if match[2].strip() else _items(lines[number:]) or _object(lines[number:])
            no_value = not items and (not match[2].strip() or match[2].startswith("#"))
            last = number + len(items)
            behind = lines[last] if last < len(lines) else ""
            is_part = ":" not in behind if items else behind.lstrip().startswith("- ")
            if is_part and behind[:1].isspace() and behind.strip():
                raise InstanceError(
                    f"{name}: line {last + 1}: {behind.strip()!r} does not belong after"
                    f" {match[1]}, needs whole lists"
                )
            ends_early = (no_value and not form.empty) or (
                in_section and not re.search(form.ending, line)
            )
        if ends_early:
            raise InstanceError(
                f"{name}: line {number}: {line.strip()!r} ends early, needs key and value"
            )
        was_key = match is not None


def _check_lists(lines: Sequence[str], name: str) -> None:
    """Refuse an empty line in a list in YAML, in front of it, or between it and its next key."""
    for number, (line, gap, behind) in enumerate(zip(lines, lines[1:], lines[2:], strict=False), 1):
        is_within = line[:1].isspace() and behind[:1].isspace()
        if line[:1].isspace() and TWO_ITEMS.search(line):
            raise InstanceError(
                f"{name}: line {number}: {line.strip()!r}, needs one item on each line"
            )
        if not gap.strip() and is_within and (ITEM.search(line) or ITEM.search(behind)):
            raise InstanceError(
                f"{name}: line {number + 1}: an empty line beside a list, needs whole lists"
            )


def _all_printed(
    form: LogFormat, lines: Sequence[str], events: Sequence[tuple[int, dict[str, Any]]]
) -> Iterator[tuple[Printed, str]]:
    """Yield values with their names, in the order of keys, events and sentences."""
    if form.keys:
        pattern = _keys(form)
        for number, line in enumerate(lines, 1):
            if (match := _setting(pattern, line)) is not None:
                entry = Printed(value=_value(match[2], lines[number:]), line=number, key=match[1])
                yield entry, form.keys[match[1]]
    for number, event in events:
        if (key := str(event.get("key"))) in form.keys:
            value = event.get("value")
            whole = int(value) if isinstance(value, float) and value.is_integer() else value
            yield Printed(value=str(whole), line=number, key=key), form.keys[key]
    patterns = [re.compile(text) for text in (*form.sentences, *log_formats().common)]
    for number, line in enumerate(lines, 1):
        for match in filter(None, (pattern.search(line) for pattern in patterns)):
            for column, value in match.groupdict().items():
                if value is not None:
                    yield Printed(value=value, line=number, key=column), column


def _value(text: str, following: Sequence[str]) -> str:
    """Return a value without what stands behind it; items on the lines that follow are joined."""
    if enabled := ENABLED.match(text):
        return enabled[1]
    value = DEFAULT.sub("", text).strip().rstrip(",").strip().strip("'\"")
    if member := ENUM.match(value):
        return (member[1] or member[2]).lower()
    return value or ", ".join(_items(following) or _object(following))


def _items(following: Sequence[str]) -> list[str]:
    """Return the items of a list in YAML."""
    items = takewhile(bool, (ITEM.search(line) for line in following))
    return [item[1].strip("'\"") for item in items if item]


def _object(following: Sequence[str]) -> list[str]:
    """Return the name of an object in YAML, as of the lines `_call_: false`, `_target_: NAME`."""
    lines = takewhile(bool, (OBJECT.search(line) for line in following))
    return [line[1] for line in lines if line and line[1]]


def _check_value(form: LogFormat, column: str, entry: Printed, name: str) -> None:
    """Refuse what a switch, or a setting with few values, cannot be."""
    values = form.values.get(entry.key, ())
    needs = "true or false" if column in SWITCHES else alternatives((*values, "none"))
    known = {*ON} if column in SWITCHES else {*values, "torch"}  # as in `torch.float32`
    is_limited = column in SWITCHES or values
    words = re.findall(r"[^\s,.'\"\[\]]+", entry.value)
    if is_limited and entry.value not in OFF and not known.issuperset(words):
        raise InstanceError(
            f"{name}: line {entry.line}: {entry.key} = {entry.value!r}, needs {needs}"
        )


def _add(printed: dict[str, Printed], column: str, entry: Printed, name: str) -> None:
    """Add a value; what is printed again has to be the same where one run has one value."""
    known = printed.get(column)
    if known is None or (not known.is_set and entry.is_set):
        printed[column] = entry
    elif column in OF_ONE_RUN and entry.is_set and _plain(known.value) != _plain(entry.value):
        raise InstanceError(
            f"{name}: line {entry.line}: {entry.key} = {entry.value}, but line {known.line} has"
            f" {known.key} = {known.value}: more than one run, needs a file for each"
        )


def _plain(value: str) -> str:
    return value.replace(",", "").strip()


def _check_spelling(
    form: LogFormat, printed: Mapping[str, Printed], lines: Sequence[str], name: str
) -> None:
    """Refuse a line among settings with a key, or nearly one, that no line sets."""
    settings = [entry.line for entry in printed.values() if entry.key in form.keys]
    missing = [
        key
        for key, column in form.keys.items()
        if column not in printed and len(key) >= ALIKE_LETTERS
    ]
    if not settings or not missing:
        return
    pattern, seen = _keys(form), {*form.keys} - {*missing}
    for number in range(max(1, min(settings) - 1), min(len(lines), max(settings) + 1) + 1):
        line = lines[number - 1]
        if MLLOG in line or " | " in line or pattern.search(line):
            continue
        words = re.findall(r"[^\s:.=\"']+", line)
        # a letter of a key may have become a blank
        blanked = re.findall(r"(\w+) (\w+)(?::| \.)", line)
        for word in (*words, *map("_".join, blanked)):
            if "_" not in word or word in seen:
                continue
            seen.add(word)
            if close := get_close_matches(word, missing, n=1, cutoff=ALIKE_SHARE):
                raise InstanceError(
                    f"{name}: line {number}: {line.strip()!r} is no known setting, and {close[0]}"
                    " is missing: needs the line as it was printed"
                )


def _check_blanks(form: LogFormat, lines: Sequence[str], name: str) -> None:
    """Refuse a number with a blank beside it that stands beside no other, as where a digit was."""
    pattern = _keys(form)
    settings = [
        (number, match[2])
        for number, line in enumerate(lines, 1)
        if (match := _setting(pattern, line)) is not None
    ]
    blanked = [number for number, value in settings if BLANKED.match(value)]
    if blanked and len(blanked) <= SELDOM * len(settings):
        raise InstanceError(
            f"{name}: line {blanked[0]}: {lines[blanked[0] - 1]!r} has a blank beside its number,"
            " unlike most settings: needs the line as it was printed"
        )


def _check_listed(form: LogFormat, printed: Mapping[str, Printed], text: str, name: str) -> None:
    """Refuse a block of settings that lacks keys that its software always prints."""
    keys = {entry.key for entry in printed.values()}
    columns = {form.keys.get(key, key) for key in keys}
    needed = form.needed or ()
    is_block = (
        bool(columns & {form.keys.get(key, key) for key in needed}) or " arguments -----" in text
    )
    begins, ends = (re.search(rf"-{{6,}} {words} -{{6,}}", text) for words in BLOCK)
    if (begins is None) != (ends is None):
        raise InstanceError(
            f"{name}: {form.name}: its settings lack their {'end' if begins else 'beginning'},"
            " needs them all"
        )
    wanted = dict.fromkeys(needed if is_block else ())
    for key, others in (form.needs or {}).items():
        entry = printed.get(form.keys[key])
        if entry is not None and entry.is_set:
            wanted |= dict.fromkeys(others)
    # another key may say the same, as `num_moe_experts` for `num_experts`
    if missing := [key for key in wanted if form.keys.get(key, key) not in printed]:
        raise InstanceError(
            f"{name}: {form.name}: its settings lack {', '.join(missing)}, needs them all"
        )


def _steps(form: LogFormat, lines: Sequence[str], name: str) -> list[LoggedStep]:
    """Return the iterations that one rank printed."""
    for text in filter(None, (form.step, *form.other_steps)):
        found = [
            (rank[0] if (rank := RANK.search(line)) else "", _step(match, line, number))
            for number, line in enumerate(lines, 1)
            if (match := re.search(text, line))
        ]
        if found:
            ((usual, _),) = Counter(rank for rank, _ in found).most_common(1)
            return _in_order([step for rank, step in found if rank == usual], name)
    return []


def _step(match: re.Match[str], line: str, number: int) -> LoggedStep:
    groups, fields = match.groupdict(), log_formats().fields
    unit = next(unit for unit in UNITS if groups.get(unit))
    beside = {name: re.search(pattern, line) for name, pattern in fields.items()}
    batch, samples, tflops = (beside[name] for name in ("batch", "samples", "tflops"))
    return LoggedStep(
        line=number,
        iteration=_whole(groups.get("iteration")),
        measured=_float(groups[unit]),
        unit=unit,
        batch=batch[1] if batch else "",
        samples=_whole(samples[1]) if samples else None,
        tflops=_float(tflops[1]) if tflops else None,
    )


def _whole(text: str | None) -> int | None:
    """Return a number of iterations or samples; None where there is none of a usual size."""
    return int(text) if text and len(text) <= MOST_DIGITS else None


def _float(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def _in_order(steps: list[LoggedStep], name: str) -> list[LoggedStep]:
    """Return the steps without repetitions; they have to count upwards, as do their samples."""
    kept = steps[:1]
    for step in steps[1:]:
        before = kept[-1]
        if step.iteration is not None and before.iteration is not None:
            if step.iteration == before.iteration:
                continue
            if step.iteration < before.iteration:
                raise InstanceError(
                    f"{name}: line {step.line}: iteration {step.iteration} after"
                    f" {before.iteration}: more than one run, needs a file for each"
                )
            _check_samples(before, step, name)
        kept.append(step)
    return kept


def _check_samples(before: LoggedStep, step: LoggedStep, name: str) -> None:
    if before.samples is None or step.samples is None or not step.batch:
        return
    if before.iteration is None or step.iteration is None or step.batch != before.batch:
        return
    iterations = step.iteration - before.iteration
    if step.samples - before.samples != iterations * int(step.batch):
        raise InstanceError(
            f"{name}: line {step.line}: {step.samples - before.samples:,} samples in"
            f" {counted(iterations, 'iteration')} of batch size {step.batch}, needs lines of one"
            " run"
        )


def _steady(
    form: LogFormat, printed: dict[str, Printed], steps: list[LoggedStep], name: str
) -> Log:
    """Return the median over the iterations of the last batch size, without those that warm up."""
    last_batch = steps[-1].batch
    steady = [*takewhile(lambda step: step.batch == last_batch, reversed(steps))][::-1]
    # where the batch grew before, those that warm up came with a smaller one
    warm_up = 0 if len(steady) < len(steps) else min(WARM_UP, len(steady) - 1)
    steady = steady[warm_up:]
    stated, rampup = printed.get("global_batch"), printed.get("rampup")
    is_constant = stated and stated.is_set and not (rampup and rampup.is_set)
    if last_batch and stated and is_constant and stated.value != last_batch:
        raise InstanceError(
            f"{name}: line {steps[-1].line}: global batch size {last_batch}, but line"
            f" {stated.line} has {stated.key} = {stated.value}: needs the log of one run"
        )
    rates = [step.tflops for step in steady if step.tflops]
    return Log(
        format=form,
        printed=printed,
        measured=median(step.measured for step in steady),
        unit=steady[-1].unit,
        batch=last_batch,
        tflops=median(rates) if rates else None,
    )


def _events(lines: Sequence[str], name: str) -> list[tuple[int, dict[str, Any]]]:
    """Return the events of MLPerf's logger with their lines."""
    events = []
    for number, line in enumerate(lines, 1):
        if MLLOG in line:
            try:
                event = json.loads(line.partition(MLLOG)[2])
            except (ValueError, RecursionError):
                event = None
            if not isinstance(event, dict):
                raise InstanceError(
                    f"{name}: line {number}: no JSON behind {MLLOG.strip()}, needs whole lines"
                )
            events.append((number, event))
    return events


def _steps_of_events(
    events: Sequence[tuple[int, dict[str, Any]]], printed: Mapping[str, Printed]
) -> list[LoggedStep]:
    """Return iterations of MLPerf's events: step times, blocks between evaluations, or throughput.

    NVIDIA's `tracked_stats` have the first and the last.
    """

    def tracked(key: str, unit: str) -> list[LoggedStep]:
        return [
            LoggedStep(line=line, measured=float(event["value"][key]), unit=unit)
            for line, event in events
            if isinstance(event.get("value"), dict)
            and isinstance(event["value"].get(key), int | float)
            and abs(event["value"][key]) < 10**MOST_DIGITS
        ]

    if times := tracked("train_step_time", "seconds"):
        return times
    entry = printed.get("global_batch")
    batch = _whole(entry.value) if entry is not None and entry.value.isdecimal() else None
    if not batch:
        return tracked("throughput", "samples_per_s")
    starts = {line: event for line, event in events if event.get("key") == "block_start"}
    stops: list[tuple[int, dict[str, Any]]] = [(0, {})]
    stops += [(line, event) for line, event in events if event.get("key") == "block_stop"]
    found = []
    for (_, before), (line, stop) in pairwise(stops):
        started = [event for number, event in starts.items() if number < line]
        until = _count(stop, "samples_count")
        since = _count(before, "samples_count")
        if not before and started and (first := _count(started[-1], "samples_count")) < until:
            since = first  # a log that begins late
        samples = until - since
        if started and samples > 0:
            block_s = (_time_ms(stop) - _time_ms(started[-1])) / 1000.0
            measured = block_s * batch / samples
            found.append(LoggedStep(line=line, measured=measured, unit="seconds"))
    return found or tracked("throughput", "samples_per_s")


def _time_ms(event: Mapping[str, Any]) -> float:
    value = event.get("time_ms")
    return float(value) if isinstance(value, int | float) and abs(value) < 10**MOST_DIGITS else 0.0


def _count(event: Mapping[str, Any], key: str) -> int:
    metadata = event.get("metadata")
    value = metadata.get(key) if isinstance(metadata, dict) else None
    return value if isinstance(value, int) and abs(value) < 10**MOST_DIGITS else 0
