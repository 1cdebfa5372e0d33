"""What a log says about a run, as columns of a table of measurements."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from coopt.instance.layouts import layout_fault, layout_of, layout_of_ends, letters_of
from coopt.instance.software import Dispatcher
from coopt.instance.texts import InstanceError, alternatives, both, counted, cut
from coopt.instance.transformer import GraphModule
from coopt.validation.logs import MOST_DIGITS, Log, log_formats
from coopt.validation.published import COLUMNS, SHAPE_COLUMNS
from coopt.validation.shapes import ALIKE, catalog_model

Cells = dict[str, str]

SHARDED = {"no_shard": "0", "optim": "1", "optim_grads": "2", "optim_grads_params": "3"}
STRATEGIES = {"fsdp2": "3", "megatron_fsdp": "3", "fsdp": "3", "hsdp": "3", "ddp": "0"}
WORDS = {"bfloat16": "bf16", "bf16-mixed": "bf16", "float16": "fp16", "16-mixed": "fp16"}
RECIPES = {"tensorwise": "fp8-cs", "current": "fp8-cs", "rowwise": "fp8-cs", "delayed": "fp8-ds"}
BYTES = {"float32": 4, "fp32": 4, "bfloat16": 2, "bf16": 2, "float16": 2, "fp16": 2}
BYTES |= {"uint8": 1, "fp8": 1}
"""Bytes of a number by the names of PyTorch and Megatron-LM."""
NOTHING = ("None", "none", "null", "~", "")
DISPATCHERS = get_args(Dispatcher)
BESIDE_NORMS = {
    "norm+act": frozenset({"moe_act", "mla_up_proj"}),
    "norm+ffn": frozenset({"moe", "mlp"}),
}
"""Modules that are recomputed beside norms, by kind; which of them a model has differs."""
PATTERN = {
    "M": "Mamba-2",
    "*": "attention",
    "-": "feed-forward",
    "E": "experts",
    "G": "gated DeltaNet",
    "D": "sparse attention with an indexer",
    "+": "latent attention",
}
"""Layers of a hybrid by the letters of Megatron-Core's pattern; the first five have columns."""
EXPERT_COLUMNS = (
    "topk",
    "expert_groups",
    "top_groups",
    "shared_ffn",
    "dense_layers",
    "dense_ffn",
    "expert_latent",
)
OPEN_WITH_EXPERTS: dict[str, set[str]] = {
    "dense_layers": {"expert_layers", "pattern"},
    "shared_ffn": {"shared_ffn"},
    "expert_groups": {"expert_groups"},
    "top_groups": {"top_groups"},
    "expert_latent": {"expert_latent"},
    "ep": {"ep"},
    "ep_overlap": {"ep_overlap"},
    "dispatcher": set(),
    "grouped_experts": {"grouped_experts"},
}
OPEN_COLUMNS: dict[str, set[str]] = {
    "interleave": {"interleave", "layout"},
    "head_dim": {"head_dim"},
    "kv_heads": {"kv_heads", "grouped"},
    "vocab": set(),
    "extra_predictions": {"extra_predictions"},
    "precision": set(),
    "gradient_bytes": {"wide_gradients"},
    "graphs": {"graphs_by", "graphs_on"},
}
"""Columns that are told as not printed, with the properties that decide them."""
LATENT_COLUMNS = ("q_rank", "kv_rank", "rope_dim", "value_dim")
INDEX_COLUMNS = ("index_heads", "index_dim", "index_tokens")
LINEAR_SIZES = ("heads", "head_dim", "groups", "state")
DELTANETS = ("gdn", "gated_delta_net")
MAMBA_COLUMNS = ("mamba_heads", "mamba_head_dim", "mamba_groups", "mamba_state")
SHOWN = {"distributed_optimizer": "zero", "fp8_recipe": "precision"}
"""Columns that follow from settings of other names."""
CUT_LIST = 8  # entries that stand for those of all layers; judgement
WIDTHS = (
    *("seq", "padded_vocab", "head_dim", "nope_dim", "rope_dim", "value_dim", "q_rank", "kv_rank"),
    *("mamba_head_dim", "mamba_state", "linear_head_dim", "linear_state", "index_dim"),
)
PRODUCT_WIDTHS = ("hidden", "dense_width", "expert_width", "shared_ffn", "expert_latent")
"""What products and attention divide into tiles: by 8, and by 16 in 8 bits."""
DIVISORS = {
    "tp": ("heads", "mamba_heads", "linear_heads"),
    "kv_heads": ("heads",),
    "ep": ("experts",),
    "expert_groups": ("experts",),
    "mamba_groups": ("mamba_heads",),
    "linear_groups": ("linear_heads",),
}
"""Counts that divide others."""
LEAST_VOCAB = 1000  # entries; judgement
NARROWEST = 4  # times that a dense layer is narrower than the model at most; judgement
SIDES = ("tp", "pp", "cp", "ep")  # degrees inside and across slices, whose product counts
DECIDED = {"recompute": {"recomputed"}, "zero": {"strategy"}}
DECIDED |= {"precision": {"fp8_recipe", "quantization"}}
DECIDED |= {name: {f"{name}_inside", f"{name}_across"} for name in SIDES}
"""Properties that others say as well."""


def cells_of(log: Log, stated: Mapping[str, str], name: str) -> Cells:
    """Return the columns of a log, and `parameters` and `reported` TFLOP/s of a GPU to check.

    Parameters
    ----------
    stated
        Columns that logs leave out; those of the log take precedence.
    name
        Name of the file, for complaints.

    Raises
    ------
    InstanceError
        If the log contradicts itself, or a model that is stated, or has layers without columns.
    """
    return _Reading(log=log, stated=dict(stated), name=name).cells()


@dataclass(frozen=True, kw_only=True)
class _Reading:
    log: Log
    stated: Cells
    name: str

    def cells(self) -> Cells:
        log = self.log
        cells = {column: log.get(column) for column in log.printed if column in COLUMNS}
        notes = [f"read from a log of {log.format.name}"]
        cells |= self._shape(notes)
        cells |= {"pipeline_layout": self._layout(notes)}
        cells |= self._split(cells, notes)
        cells |= {"precision": self._precision(), "recompute": self._recompute()}
        cells |= self._software(cells, notes)
        cells |= self._time(cells)
        defaults = [name for name, entry in log.printed.items() if not entry.line]
        decided = {name for name, others in DECIDED.items() if log.printed.keys() & others}
        silent = {
            SHOWN.get(name, name): name for name in (*defaults, *log.assumed) if name not in decided
        }
        silent = {
            column: cells[column]
            for column, name in silent.items()
            if cells.get(column)
            and (name in defaults or not log.get(name))
            and (name != "fp8_recipe" or log.get("fp8"))
        }
        stated = [f"{column} {value}" for column, value in silent.items()]
        if stated := [*stated, *self._open_columns(cells)]:
            notes.append(f"not printed: {', '.join(stated)}")
        repository = log.format.source.partition(",")[0]
        cells |= {"source_url": f"https://github.com/{repository}", "notes": "; ".join(notes)}
        cells |= {"parameters": log.get("parameters"), "reported": f"{log.tflops or 0.0:g}"}
        return {column: value for column, value in cells.items() if value}

    def _open_columns(self, cells: Cells) -> list[str]:
        """Return the columns that settings leave open, as defaults differ between releases."""
        log = self.log
        if not (log.lists_all and log.get("layers")):
            return []
        sources = OPEN_COLUMNS | (OPEN_WITH_EXPERTS if cells.get("experts") else {})
        columns = [
            column
            for column, names in sources.items()
            if not (cells.get(column) or log.printed.keys() & names)
            and (column != "interleave" or self._degree("pp") > 1)
        ]
        recipe = log.printed.get("fp8_recipe")
        further = {
            "which modules are recomputed": cells["recompute"] == "selective"
            and not log.get("modules"),
            "FFN width of experts": bool(cells.get("experts")) and not log.get("expert_width"),
            "fp8_head": bool(log.get("fp8")) and "fp8_head" not in log.printed,
            "fp8 of precision": bool(recipe and recipe.line) and "fp8" not in log.printed,
        }
        return [*columns, *(name for name, is_open in further.items() if is_open)]

    def _fault(self, text: str) -> InstanceError:
        return InstanceError(f"{self.name}: {text}")

    def _number(self, name: str) -> int:
        """Return a whole number above 0, or 0 where it is not printed."""
        text = self.log.get(name).replace(",", "")
        if text and not (text.isdecimal() and len(text) <= MOST_DIGITS):
            entry = self.log.printed[name]
            raise self._fault(
                f"line {entry.line}: {entry.key} = {entry.value!r}, needs a whole number"
            )
        return int(text or 0)

    def _flag(self, name: str) -> str:
        """Return `1` or `0` for a switch that is printed; empty for one that is not."""
        entry = self.log.printed.get(name)
        return "" if entry is None else str(int(entry.is_set))

    def _model_name(self) -> str:
        text = self.log.get("model").rstrip("/").rpartition("/")[2].replace(" ", "-")
        text = log_formats().models.get(text, text)
        own = "" if text == "default" else text
        return own or self.stated.get("model", "")

    def _shape(self, notes: list[str]) -> Cells:
        log, experts = self.log, self._number("experts")
        dense_width, activations = log.get("dense_width"), log.get("activations")
        cells = {
            "model": self._model_name(),
            "ffn": dense_width,
            "gated": self._flag("gated") or (str(int("," in activations)) if activations else ""),
            "tied_embeddings": {"1": "0", "0": "1"}.get(self._flag("untied"), "")
            or self._flag("tied_embeddings"),
            "vocab": log.get("padded_vocab") or log.get("vocab"),
            "layers": log.get("layers"),
            "window": "",
            "output_gate": self._flag("output_gate"),
            "extra_predictions": log.get("extra_predictions"),
        }
        if self._flag("grouped") == "0":  # then num_query_groups is a default that nothing reads
            cells["kv_heads"] = ""
        dense = dict.fromkeys(("experts", *EXPERT_COLUMNS), "")
        cells |= self._expert_cells(dense_width, notes) if experts > 1 else dense
        cells |= self._attention_cells() | self._window_cells()
        cells |= self._hybrid_cells(cells, dense_width)
        self._check_widths(cells)
        self._check_model(cells)
        return cells

    def _check_widths(self, cells: Cells) -> None:
        """Refuse widths and counts that no kernel or split takes, as those that lack a digit."""
        tiles = dict.fromkeys((*WIDTHS, *PRODUCT_WIDTHS), 8)
        if self.log.get("fp8") or self.log.get("fp4"):
            tiles |= dict.fromkeys(PRODUCT_WIDTHS, 16)
        entries = {name: self.log.printed[name] for name in tiles if self._number(name)}
        for name, entry in entries.items():
            if self._number(name) % tiles[name]:
                raise self._fault(
                    f"line {entry.line}: {entry.key} = {entry.value}, needs a multiple of"
                    f" {tiles[name]}"
                )
        for divisor, counts in DIVISORS.items():
            for count in counts:
                whole, part = self._number(count), self._number(divisor)
                if whole > 1 and part and whole % part:
                    entry, other = self.log.printed[count], self.log.printed[divisor]
                    raise self._fault(
                        f"line {entry.line}: {entry.key} = {whole}, but line {other.line} has"
                        f" {other.key} = {part}, needs one that divides {entry.key}"
                    )
        for name in ("padded_vocab", "vocab"):
            if 0 < self._number(name) < LEAST_VOCAB:
                entry = self.log.printed[name]
                raise self._fault(
                    f"line {entry.line}: {entry.key} = {entry.value}, needs at least {LEAST_VOCAB}"
                )
        hidden, width = self._number("hidden"), self._number("dense_width")
        is_dense = not cells.get("experts") or cells.get("dense_layers")
        if is_dense and width and width * NARROWEST < hidden:
            entry = entries["dense_width"]
            raise self._fault(
                f"line {entry.line}: {entry.key} = {entry.value}, but"
                f" {self.log.printed['hidden'].key} = {hidden}: needs the width of a dense layer"
            )

    def _expert_cells(self, dense_width: str, notes: list[str]) -> Cells:
        log = self.log
        width = log.get("expert_width") or dense_width
        dense_layers = self._dense_layers(notes)
        shared = self._number("shared_experts")
        return {
            "ffn": width,
            "dense_layers": str(dense_layers or ""),
            "dense_ffn": dense_width if dense_layers else "",
            "shared_ffn": log.get("shared_ffn")
            or (str(shared * int(width)) if shared and width.isdecimal() else ""),
        }

    def _dense_layers(self, notes: list[str]) -> int:
        """Return the layers without experts, by their number or a list with a 0 for each."""
        entry = self.log.printed.get("expert_layers")
        text, layers = self.log.get("expert_layers"), self._number("layers")
        if not text and entry is not None and entry.value == "0":
            raise self._fault(
                f"line {entry.line}: {entry.key} = 0: no layer has experts, needs some layers with"
                " experts"
            )
        if not text:
            return self._number("first_dense_layers")
        if text.isdecimal() and int(text):
            return layers - math.ceil(layers / int(text))  # every n-th has experts, from the first
        runs = re.findall(r"\[?([01](?:, ?[01])*)\]?(?: ?\* ?(\d{1,4}))?", text)
        kinds = [kind for kinds, times in runs for kind in kinds.split(",") * int(times or 1)]
        if damaged := re.sub(r"[\d\[\](), *+]", "", text):
            raise self._fault(f"moe_layer_freq has {damaged!r}, needs a 0 or 1 for each layer")
        if not kinds or len(kinds) > max(layers, 1) or CUT_LIST < len(kinds) < layers:
            raise self._fault(
                f"moe_layer_freq has {len(kinds)} entries, but num_layers = {layers}: needs one"
                " for each layer"
            )
        # the rest of a list that was cut is as its last entry
        rest = max(layers - len(kinds), 0)
        kinds = [kind.strip() for kind in (*kinds, *kinds[-1:] * rest)]
        dense_layers = kinds.count("0")
        if rest:
            notes.append(
                f"not printed: moe_layer_freq of the last {counted(rest, 'layer')}, assumed to"
                f" equal the last printed entry, so that dense_layers = {dense_layers}"
            )
        if "1" not in kinds:
            raise self._fault(
                f"moe_layer_freq = {text}: no layer has experts, needs some layers with experts"
            )
        return dense_layers

    def _attention_cells(self) -> Cells:
        log = self.log
        kind = log.get("attention_type")
        variant = log.get("attention_variant")
        if variant not in ("", "dsa", *DELTANETS):
            raise self._fault(
                f"{log.printed['attention_variant'].key} = {variant}: tables have no columns for"
                f" such layers, needs dsa, {alternatives((*DELTANETS, 'none'))}"
            )
        sparse = {} if variant == "dsa" else dict.fromkeys(INDEX_COLUMNS, "")
        if variant in DELTANETS:
            sparse["mixers"] = self._deltanet(self._linear_layers())
        if not (log.get("latent") or kind == "mla"):
            return dict.fromkeys(LATENT_COLUMNS, "") | sparse
        head_dim = self._number("nope_dim") + self._number("rope_dim")
        return {"head_dim": str(head_dim), "kv_heads": log.get("heads"), **sparse}

    def _linear_layers(self) -> int:
        """Return the layers with linear attention: all but every n-th, or those with a 1."""
        text, layers = self.log.get("linear_layers"), self._number("layers")
        if text.isdecimal() and 0 < len(text) <= MOST_DIGITS and int(text):
            return layers - layers // int(text)
        kinds = re.findall(r"[01]", text)
        if len(kinds) != layers:
            raise self._fault(
                f"linear_attention_freq = {text!r}: needs a number, or an entry for each of"
                f" {layers} layers"
            )
        return kinds.count("1")

    def _deltanet(self, layers: int) -> str:
        """Return the cell of layers with gated DeltaNet."""
        sizes = {name: self._number(f"linear_{name}") for name in LINEAR_SIZES}
        if not all(sizes.values()):
            keys = {name: key for key, name in self.log.format.keys.items()}
            missing = both(keys[f"linear_{name}"] for name, size in sizes.items() if not size)
            raise self._fault(f"the log has gated DeltaNet without {missing}, needs these sizes")
        return json.dumps([{"kind": "gated-deltanet", "layers": layers, **sizes}])

    def _window_cells(self) -> Cells:
        window = re.search(r"\d+", self.log.get("window_size"))
        if window is None:
            return {}
        layers, skip = self._number("layers"), self.log.get("window_skip")
        if skip.isdecimal():
            windowed = layers - layers // int(skip)  # every n-th attends to all tokens
        else:
            windowed = skip.count("1") if skip else layers
        return {"window": window[0], "window_layers": str(windowed)}

    def _hybrid_cells(self, cells: Cells, dense_width: str) -> Cells:
        """Return the counts of layers by kind of a hybrid's pattern."""
        main, *further = self.log.get("pattern").split("/")
        if not main:
            return dict.fromkeys(MAMBA_COLUMNS, "")
        letters, key = main.replace("|", ""), self.log.printed["pattern"].key
        for letter in dict.fromkeys(letters):
            if letter not in "M*-EG":
                kind = PATTERN.get(letter, "an unknown kind")
                raise self._fault(
                    f"{key} has {letter} ({kind}): tables have no columns for such layers, needs"
                    " M, *, -, E and G"
                )
        layers = self._number("layers")
        if layers and layers != len(letters):
            raise self._fault(
                f"{key} has {len(letters)} layers, but num_layers = {layers}, needs the log of one"
                " run"
            )
        has_experts, plain = bool(cells.get("experts", self.log.get("experts"))), letters.count("-")
        return {
            "layers": str(len(letters)),
            "mamba_layers": str(letters.count("M")),
            "attention_layers": str(letters.count("*")),
            "ffn_layers": str(letters.count("E") + plain),
            **({"mixers": self._deltanet(letters.count("G"))} if "G" in letters else {}),
            "dense_layers": str(plain) if has_experts and plain else "",
            "dense_ffn": dense_width if has_experts and plain else "",
            **({"extra_predictions": str(len(further))} if further else {}),
        }

    def _layout(self, notes: list[str]) -> str:
        """Return the layout of the pipeline; refused where it has other layers or stages than the
        rest of the log.
        """
        for name in ("layout", "first_stage", "last_stage"):
            entry = self.log.printed.get(name)
            if entry and not entry.is_set and entry.value not in NOTHING:
                raise self._fault(
                    f"line {entry.line}: {entry.key} = {entry.value}, needs None or"
                    f" {'a layout' if name == 'layout' else 'a number of layers above 0'}"
                )
        printed, p, v = self.log.get("layout"), self._number("pp"), self._number("interleave")
        layers, predictions = self._number("layers"), self._number("extra_predictions")
        ends = {name: self._number(f"{name}_stage") for name in ("first", "last")}
        if not printed:
            if not any(ends.values()):
                return ""
            text = (
                layout_of_ends(layers, p, ends["first"], ends["last"], predictions)
                if v <= 1
                else ""
            )
            if not text:
                stages = both(
                    f"{counted(size, 'layer')} ({name})" for name, size in ends.items() if size
                )
                notes.append(f"stages of {stages} are treated as equal to the others")
            return text
        if given := [size for size in ends if ends[size]]:
            entry = self.log.printed[f"{given[0]}_stage"]
            raise self._fault(
                f"line {entry.line}: {entry.key} = {entry.value}, but the log has"
                f" {self.log.printed['layout'].key} too, needs one of them"
            )
        try:
            text = letters_of(printed.replace("'", "").replace('"', ""))
            fault = layout_fault(text, layers, predictions, (p,), (v,) if v else None)
        except ValueError as error:
            fault = str(error)
        if fault:
            raise self._fault(f"pipeline_model_parallel_layout = {cut(printed)}: {fault}")
        return text

    def _check_model(self, cells: Cells) -> None:
        """Refuse a model of the catalog whose shape is other than that of the log."""
        names = [self.stated.get("model", ""), cells["model"]]
        known = {one.name: one for one in map(catalog_model, filter(None, names)) if one}
        if len(known) > 1:
            raise self._fault(
                f"model = {names[0]}, but the log is of {names[1]}: needs the model that was run"
            )
        pairs = ALIKE | {column: column for column in SHAPE_COLUMNS}
        for model in known.values():
            for column, field in pairs.items():
                value = cells[column] if column in cells else self.log.get(column)
                of_model = getattr(model, field)
                if not (value.isdecimal() and len(value) <= MOST_DIGITS):
                    continue
                if int(value) != int(of_model or 0):
                    raise self._fault(
                        f"{column} = {value}, but model = {model.name} has {field} ="
                        f" {int(of_model or 0)}: needs the model that was run"
                    )

    def _split(self, cells: Cells, notes: list[str]) -> Cells:
        log = self.log
        degrees = {name: self._degree(name) for name in SIDES}
        split = {name: str(degree) for name, degree in degrees.items() if degree}
        t, p, c, _ = (max(1, degree) for degree in degrees.values())
        gpus = self._gpus(t * p * c) or (cells.get("gpus") or self.stated.get("gpus", ""))
        gpus = gpus if len(gpus) <= MOST_DIGITS else ""
        replicas = int(gpus) // (t * p * c) if gpus.isdecimal() else 0
        dp = self._number("dp")
        if dp and gpus.isdecimal() and t * p * c * dp != int(gpus):
            raise self._fault(
                f"data-parallel size {dp} x TP {t} x PP {p} x CP {c} = {dp * t * p * c}, but"
                f" gpus = {gpus}: needs figures of one run"
            )
        if self._number("interleave") > 1 and degrees["pp"] == 1:
            raise self._fault(
                f"{counted(self._number('interleave'), 'model chunk')} on each GPU with PP 1, needs"
                " PP above 1"
            )
        if log.get("sequence_parallel") and degrees["tp"] == 1 and log.lists_all:
            raise self._fault("sequence_parallel with TP 1, needs TP above 1")
        if cells.get("experts") and (of_experts := self._number("etp")):
            notes.append(f"ETP={of_experts}")
        copies = self._number("dp_replicate")
        ranks = (self._sharded_replicas() or replicas) * c
        if copies > 1 and ranks:
            if ranks % copies:
                entry = log.printed["dp_replicate"]
                raise self._fault(
                    f"line {entry.line}: {entry.key} = {copies} does not divide DP {ranks // c} x"
                    f" CP {c}, needs the log of one run"
                )
            notes.append(f"FSDP shard={ranks // copies}")
        return {
            **split,
            "gpus": gpus,
            "dp": "",
            "zero": self._zero(),
            "sequence_parallel": self._flag("sequence_parallel"),
            "offload_percent": self._offload_percent(),
            "ep_overlap": "1" if log.get("ep_overlap") else "",
            "interleave": self._chunks(p, cells) if p > 1 else "",
            **self._batches(p, replicas, gpus),
        }

    def _degree(self, name: str) -> int:
        """Return a degree; of two for inside and across slices, their product."""
        sides = [self.log.printed.get(f"{name}_{side}") for side in ("inside", "across")]
        for entry in filter(None, sides):
            if not entry.value.isdecimal() or len(entry.value) > MOST_DIGITS:
                raise self._fault(f"line {entry.line}: {entry.key} = {entry.value}, needs a degree")
        printed = [int(entry.value) for entry in sides if entry is not None]
        return math.prod(printed) if printed else self._number(name)

    def _gpus(self, ranks: int) -> str:
        """Return the number of GPUs where nodes, degrees or batches say it."""
        nodes, each = self._number("nodes"), self._number("gpus_per_node")
        if nodes and each:
            return str(nodes * each)
        if replicas := self._sharded_replicas():
            return str(replicas * ranks)
        names = ("global_batch", "micro_batch", "accumulation")
        batch, micro, rounds = map(self._number, names)
        is_open = not self.log.get("gpus") and "gpus" not in self.stated
        if batch and micro and rounds and is_open and self._degree("tp"):
            return str(batch // (micro * rounds) * ranks)
        return ""

    def _sharded_replicas(self) -> int:
        """Return the replicas that shards and their copies make up; 0 where none are printed."""
        return self._number("dp_shard") * max(1, self._number("dp_replicate"))

    def _chunks(self, stages: int, cells: Cells) -> str:
        """Return the model chunks of a GPU."""
        if total := self._number("stages"):
            return str(total // stages)
        if each := self._number("layers_per_stage"):
            model = catalog_model(self._model_name())
            return str(max(1, math.ceil(model.layers / each) // stages)) if model else ""
        if layout := cells.get("pipeline_layout"):
            return str(len(layout_of(layout)) // stages)
        return self.log.get("interleave")

    def _batches(self, stages: int, replicas: int, gpus: str) -> Cells:
        """Return global batch and micro-batch, whatever they are counted in."""
        log, seq = self.log, self._number("seq")
        batch, local = self._number("global_batch"), self._number("local_batch")
        if seq:
            batch = batch or self._number("tokens_per_step") // seq
            local = local or self._number("tokens_per_rank") // seq
        device_batch = re.fullmatch(r"\d{1,9}(?:\.\d+)?", log.get("device_batch"))
        if device_batch and not batch and gpus.isdecimal():
            batch = round(float(device_batch[0]) * int(gpus))
        batch = int(log.batch or batch)
        rounds = max(1, self._number("accumulation"))
        parts = self._number("micro_batches") if stages > 1 else 1
        if device_batch and replicas:
            local = batch // (replicas * rounds)
        micro = self._number("micro_batch") or (self._number("pp_micro_batch") * (stages > 1))
        return {
            "global_batch": str(batch or ""),
            "micro_batch": str(micro or (local // parts if parts else "") or ""),
        }

    def _zero(self) -> str:
        log = self.log
        if log.get("torch_fsdp"):
            return "3"
        if log.get("megatron_fsdp"):
            return SHARDED.get(log.get("sharded") or "no_shard", "")
        if strategy := log.get("strategy"):
            return STRATEGIES.get(strategy.lower(), "")
        fsdp = [log.printed.get(f"fsdp_{side}") for side in ("inside", "across")]
        if any(entry and entry.value != "1" for entry in fsdp):
            return "3"
        stage = log.printed.get("zero")
        printed = stage.value if stage else self._flag("distributed_optimizer")
        return printed or log.assumed.get("zero", "")

    def _offload_percent(self) -> str:
        log, share = self.log, self.log.get("offload_share") or "1"
        if not log.lists_all:
            return ""
        if not log.get("offloading"):
            return "0"
        is_share = re.fullmatch(r"\d(?:\.\d+)?", share)
        return f"{100.0 * float(share):g}" if is_share else share

    def _precision(self) -> str:
        """Return the format of matrix products: the narrowest that is switched on."""
        log = self.log
        quantization, fp8 = log.get("quantization"), log.get("fp8")
        if log.get("fp4") or "fp4" in quantization:
            return "nvfp4"
        if fp8 or "fp8" in quantization:
            recipe = log.get("fp8_recipe") or fp8.lower() or quantization
            narrow = [name for name in ("nvfp4", "mxfp8") if name in recipe + quantization]
            return narrow[0] if narrow else RECIPES.get(recipe, "fp8")
        if quantization and quantization != "none":
            return quantization
        word = log.get("precision").lower()
        switched = next((name for name in ("bf16", "fp16") if log.get(name)), "")
        return switched or WORDS.get(word, word) or log.assumed.get("precision", "")

    def _recompute(self) -> str:
        """Return the kind of recomputation; an unknown one is kept, and its row refused later."""
        log, kinds = self.log, log_formats().recompute
        if "recomputed" in log.printed:
            entry = log.printed["recomputed"]
            return ("selective" if entry.value == "selective" else "full") * entry.is_set or "none"
        if "recompute" not in log.printed:
            return ""
        word = log.get("recompute").lower() or "none"
        names = re.findall(r"\w+", log.get("modules"))
        if word != "selective" or not names or names == ["core_attn"]:
            return kinds.get(word, word)
        others = {*names} - {"layernorm"}
        norms = [kind for kind, modules in BESIDE_NORMS.items() if others <= modules]
        return norms[0] if norms and "layernorm" in names else "+".join(names)

    def _software(self, cells: Cells, notes: list[str]) -> Cells:
        """Return the columns of what the run is made of."""
        log, compiled = self.log, self.log.get("compiled")
        # TorchTitan under another launcher
        framework = "fsdp" if log.get("dp_shard") else log.format.framework
        states = ("master_type", "first_moment_type", "second_moment_type")
        state_bytes = sum(BYTES.get(log.get(name).rpartition(".")[2], 4) for name in states)
        kind = log.get("dispatcher_type")
        backend = log.get("flex_backend") or "deepep" * bool(log.get("deepep"))
        dispatcher = "all-to-all" if kind == "alltoall" else backend * (kind in ("", "flex"))
        if dispatcher == "ncclep":  # copies with multiprocessors, as HybridEP does
            dispatcher = "hybridep"
            notes.append("the dispatcher ncclep is treated as hybridep")
        model = catalog_model(cells["model"])
        has_experts = bool(cells.get("experts") or (model and model.experts))
        return {
            "framework": self.stated.get("framework", framework),
            "compile": "1" if compiled else "",
            "gradient_bytes": {"1": "4", "0": "2"}.get(self._flag("wide_gradients"), ""),
            "fp8_head": self._flag("fp8_head") * bool(log.get("fp8")),
            "grouped_experts": self._flag("grouped_experts") * has_experts,
            "state_bytes": str(state_bytes) if log.get("precise_optimizer") else "",
            "dispatcher": dispatcher if has_experts and dispatcher in DISPATCHERS else "",
            "dispatcher_multiprocessors": (
                log.get("dispatcher_multiprocessors") if has_experts else ""
            ),
            **self._graphs(has_experts, notes),
        }

    def _graphs(self, has_experts: bool, notes: list[str]) -> Cells:
        """Return which kernels belong to CUDA graphs."""
        impl, scope = self.log.get("graphs_by"), self.log.get("graph_scope")
        impl = impl or self.log.get("graphs_on")  # releases of 2025
        if not impl:
            return {"graphs": "none"} if "graphs_by" in self.log.printed else {}
        words = re.findall(r"\w+", f"{scope} {self.log.get('inference_graphs')}")
        if "full_iteration" in (impl, *words):
            return {"graphs": "full"}
        modules = [word for word in words if word in get_args(GraphModule)]
        # a block of layers is captured in inference alone, whose name was another in older releases
        if not modules and {"block", "full_iteration_inference"} & {*words}:
            return {"graphs": "none"}
        if not modules:
            # An empty list means whole layers, as `full` does in older releases.
            whole = "graph_scope" in self.log.printed
            modules = ["attn", *(["mlp"] * (whole or not has_experts))]
            modules += (["moe"] if whole else ["moe_router", "moe_preprocess"]) * has_experts
            modules += ["mamba"] * bool(self.log.get("pattern"))
            if "full" not in words:
                said, reason = ("named", "a whole layer") if whole else ("printed", "as is usual")
                notes.append(
                    f"not {said}: the modules of CUDA graphs ({'+'.join(modules)} are"
                    f" assumed, {reason})"
                )
        return {"graphs": "scoped", "graph_modules": "+".join(modules)}

    def _time(self, cells: Cells) -> Cells:
        """Return the measured column, from seconds or from a rate."""
        log = self.log
        if log.unit == "gpu_tokens_per_s":
            return {"tokens_per_s_per_gpu": f"{log.measured:.6g}"}
        if log.unit in ("ms", "seconds"):
            scale = 1000.0 if log.unit == "ms" else 1.0
            return {"iter_time_s": f"{log.measured / scale:.6g}"}
        columns = ("global_batch",) + ("seq",) * (log.unit == "tokens_per_s")
        values = {name: cells.get(name) or self.stated.get(name, "") for name in columns}
        if missing := [name for name, value in values.items() if not value.isdecimal()]:
            raise self._fault(
                f"the log reports a rate in {log.unit.partition('_')[0]} a second, which needs"
                f" {both(missing)}: {' '.join(f'--set {name}=...' for name in missing)}"
            )
        count = math.prod(map(int, values.values()))
        return {"iter_time_s": f"{count / log.measured:.6g}" if log.measured else "0"}
