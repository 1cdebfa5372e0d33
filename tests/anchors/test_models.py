"""Models: published totals of parameters, and the parts of a shape that totals do not show.

Totals are those of the published weights (safetensors metadata, papers), norms and biases among them; the model counts
matrices alone, so that it has to be below, by less than half a thousandth where weights were published.
"""

import json
from pathlib import Path

import pytest

from coopt.instance.catalog import entries
from coopt.instance.models.documents import imported
from coopt.instance.transformer import Transformer
from coopt.perf.mapping import model_parameters
from tests.models.configs import CATALOGUED, MODELS

TOTALS = {  # parameters, of which a token meets, and how far off they may be
    "gpt-22b": (12 * 48 * 6144**2 + 51_200 * 6144, None, 1e-12),  # 12 l h^2 + V h (arXiv 2104.04473, equation 2)
    "gpt-175b": (12 * 96 * 12_288**2 + 51_200 * 12_288, None, 1e-12),
    "gpt-530b": (12 * 105 * 20_480**2 + 51_200 * 20_480, None, 1e-12),
    "gpt-1t": (12 * 128 * 25_600**2 + 51_200 * 25_600, None, 1e-12),
    "llama3-8b": (8_030_261_248, None, 5e-4),
    "llama3-70b": (70_553_706_496, None, 5e-4),
    "llama3-405b": (405_853_388_800, None, 5e-4),
    "mixtral-8x7b": (46_702_792_704, 12.9e9, 5e-4),  # arXiv 2401.04088: 12.9 B active
    "deepseek-v3": (671_026_419_200, 37e9, 5e-4),  # arXiv 2412.19437: 671 B, 37 B active
    "kimi-k2": (1_026_408_232_448, 32e9, 5e-4),  # arXiv 2507.20534: 1.04 T, 32 B active
    "qwen3-30b-a3b": (30_532_122_624, 3.3e9, 5e-4),  # arXiv 2505.09388
    "qwen3-235b-a22b": (235_093_634_560, 22e9, 5e-4),
    "gpt-oss-120b": (116_829_156_672, 5.13e9 + 201_088 * 2880, 5e-4),  # model card: 5.13 B without the embedding
    "grok1-314b": (314e9, 86e9, 6e-3),  # xAI: 314 B, a quarter of the weights active
    "nemotron4-340b": (341e9, None, 1e-3),  # arXiv 2406.11704: 331.6 B and embeddings of 9.4 B
    "mpt-7b": (6_649_286_656, None, 5e-4),
    "mpt-30b": (12 * 48 * 7168**2 + 50_368 * 7168, None, 1e-12),  # as GPT
    "mpt-70b": (12 * 80 * 8192**2 + 50_368 * 8192, None, 1e-12),
    "nemotron-h-56b": (56e9, None, 0.01),  # arXiv 2504.03624
    "nemotron-3-nano": (31.6e9, 3.6e9, 1e-3),  # NVIDIA: 31.6 B, 3.6 B active with embeddings
    "nemotron-3-super": (120.6e9, 12.7e9, 1e-3),  # NVIDIA: 120.6 B, 12.7 B active
    "nemotron-3-ultra": (550e9, 55e9, 2e-3),  # NVIDIA: 550 B, 55 B active
}
SHAPES = {  # layers, hidden, heads, key and value heads, size of a head, feed-forward, vocabulary, sequence
    "gpt-22b": (48, 6144, 64, 64, 96, 4 * 6144, 51_200, 2048),  # arXiv 2205.05198, table 3
    "gpt-175b": (96, 12_288, 96, 96, 128, 4 * 12_288, 51_200, 2048),
    "gpt-530b": (105, 20_480, 128, 128, 160, 4 * 20_480, 51_200, 2048),
    "gpt-1t": (128, 25_600, 160, 160, 160, 4 * 25_600, 51_200, 2048),
    "llama3-8b": (32, 4096, 32, 8, 128, 14_336, 128_256, 8192),  # arXiv 2407.21783, table 3
    "llama3-70b": (80, 8192, 64, 8, 128, 28_672, 128_256, 8192),
    "llama3-405b": (126, 16_384, 128, 8, 128, 53_248, 128_256, 8192),
    "mixtral-8x7b": (32, 4096, 32, 8, 128, 14_336, 32_000, 4096),  # arXiv 2401.04088, table 1; NeMo's sequence
    "deepseek-v3": (61, 7168, 128, 128, 128 + 64, 2048, 129_280, 4096),  # arXiv 2412.19437, section 4.2
    "kimi-k2": (61, 7168, 64, 64, 128 + 64, 2048, 163_840, 4096),  # arXiv 2507.20534, table 2
    "qwen3-30b-a3b": (48, 2048, 32, 4, 128, 768, 151_936, 4096),  # config.json; Megatron Bridge's sequence
    "qwen3-235b-a22b": (94, 4096, 64, 4, 128, 1536, 151_936, 4096),
    "gpt-oss-120b": (36, 2880, 64, 8, 64, 2880, 201_088, 4096),
    "grok1-314b": (64, 6144, 48, 8, 128, 32_768, 128_256, 8192),  # DGX Cloud benchmarking
    "nemotron4-340b": (96, 18_432, 96, 8, 192, 4 * 18_432, 256_000, 4096),  # arXiv 2406.11704, table 1
    "mpt-7b": (32, 4096, 32, 32, 128, 4 * 4096, 50_368, 2048),  # LLM Foundry
    "mpt-30b": (48, 7168, 56, 56, 128, 4 * 7168, 50_368, 2048),
    "mpt-70b": (80, 8192, 64, 64, 128, 4 * 8192, 50_368, 2048),
    "nemotron-h-56b": (118, 8192, 64, 8, 128, 32_768, 131_072, 8192),  # arXiv 2504.03624, table 1
    "nemotron-3-nano": (52, 2688, 32, 2, 128, 1856, 131_072, 8192),  # config.json, through torchtitan
    "nemotron-3-super": (88, 4096, 32, 2, 128, 2688, 131_072, 8192),
    "nemotron-3-ultra": (108, 8192, 64, 2, 128, 5120, 131_072, 8192),
}
EXPERTS = {  # experts, of which a token visits, width of the shared ones, groups, of which it may visit
    "mixtral-8x7b": (8, 2, 0, 0, 0),
    "deepseek-v3": (256, 8, 2048, 8, 4),  # arXiv 2412.19437: at most 4 of 8 nodes
    "kimi-k2": (384, 8, 2048, 0, 0), "qwen3-30b-a3b": (128, 8, 0, 0, 0), "qwen3-235b-a22b": (128, 8, 0, 0, 0),
    "gpt-oss-120b": (128, 4, 0, 0, 0), "grok1-314b": (8, 2, 0, 0, 0), "nemotron-3-nano": (128, 6, 2 * 1856, 0, 0),
    "nemotron-3-super": (512, 22, 2 * 2688, 0, 0), "nemotron-3-ultra": (512, 22, 2 * 5120, 0, 0),
}  # fmt: skip
HYBRIDS = {  # layers of Mamba-2, of attention and of feed-forward; heads of 64, in 8 groups; state; latent width
    "nemotron-h-56b": (54, 10, 54, 256, 256, 0),
    "nemotron-3-nano": (23, 6, 23, 64, 128, 0),
    "nemotron-3-super": (40, 8, 40, 128, 128, 1024),
    "nemotron-3-ultra": (48, 12, 48, 256, 128, 2048),
}
LATENT = {  # first dense layers and their width; ranks of queries and of keys and values; positions; a value head
    "deepseek-v3": (3, 18_432, 1536, 512, 64, 128),
    "kimi-k2": (1, 18_432, 1536, 512, 64, 128),
}
PREDICTIONS = {"deepseek-v3": 1, "nemotron-3-super": 2, "nemotron-3-ultra": 2}
GATED = "llama3 mixtral deepseek kimi qwen3 gpt-oss grok1"  # SwiGLU; the others have two matrices
TIED = "gpt-22b gpt-175b gpt-530b gpt-1t grok1-314b mpt-7b mpt-30b mpt-70b"


def model(name: str) -> Transformer:
    entry = entries("model")[name]
    assert isinstance(entry, Transformer)
    return entry


def test_every_model_is_anchored() -> None:
    assert set(TOTALS) == set(SHAPES)
    assert set(SHAPES) | set(CATALOGUED.values()) == set(entries("model"))
    assert set(EXPERTS) == {name for name in SHAPES if model(name).experts}
    assert set(HYBRIDS) == {name for name in SHAPES if model(name).mamba_layers}


def test_newer_models_are_those_of_their_configurations(tmp_path: Path) -> None:
    """Key by key; `tests/models` counts what each configuration has beside what was published."""
    file = tmp_path / "config.json"
    for name, ours in CATALOGUED.items():
        file.write_text(json.dumps(MODELS[name][1]), "utf-8")
        same = imported(file).same
        assert same is not None, name
        assert same.name == ours
        assert ours in SHAPES or same.seq == 4096  # where no run is known: as most begin training


def test_published_counts_are_those_of_cards_and_papers() -> None:
    cards = {ours: [*map(float, MODELS[name][0].split())] for name, ours in CATALOGUED.items()}
    papers = {name: [total / 1e9, (active or total) / 1e9] for name, (total, active, _) in TOTALS.items()}
    for name, figures in (papers | cards).items():
        told = [model(name).published_total, model(name).published_active]
        expected = [figure for figure, is_told in zip(figures, told, strict=True) if is_told]
        assert [figure for figure in told if figure] == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("name", TOTALS)
def test_parameters_are_those_published(name: str) -> None:
    published, published_active, share = TOTALS[name]
    total, active = model_parameters(model(name))
    assert total == pytest.approx(published, rel=share)
    assert active == pytest.approx(total if published_active is None else published_active, rel=0.03)
    plain = not (model(name).experts or model(name).kv_rank or model(name).mamba_layers)
    assert not plain or model(name).parameters == total


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_those_of_the_paper_or_its_configuration(name: str) -> None:
    one = model(name)
    shape = (one.layers, one.hidden, one.heads, one.kv_heads, one.head_dim, one.ffn, one.vocab, one.seq)
    assert shape == SHAPES[name]
    assert one.gated == name.startswith(tuple(GATED.split()))
    assert one.tied_embeddings == (name in TIED.split())
    assert (one.causal, one.capacity) == (True, 1.0)


@pytest.mark.parametrize("name", SHAPES)
def test_experts_hybrids_and_latent_attention_are_those_of_the_configuration(name: str) -> None:
    one = model(name)
    experts = (one.experts, one.top_k, one.shared_ffn, one.expert_groups, one.top_groups)
    assert experts == EXPERTS.get(name, (0, 0, 0, 0, 0))
    layers = (one.mamba_layers, one.with_attention, one.with_ffn)
    mixer = (one.mamba_heads, one.mamba_state, one.expert_latent)
    assert (*layers, *mixer) == HYBRIDS.get(name, (0, one.layers, one.layers, 0, 0, 0))
    assert (one.mamba_head_dim, one.mamba_groups) == ((64, 8) if name in HYBRIDS else (0, 0))
    latent = (one.dense_layers, one.dense_ffn, one.q_rank, one.kv_rank, one.rope_dim, one.value_dim)
    assert latent == LATENT.get(name, (0, 0, 0, 0, 0, 0))
    assert one.extra_predictions == PREDICTIONS.get(name, 0)
    windows = {getattr(mixer, "window", 0): layers for layers, mixer in one.kinds if mixer.__class__ is Transformer}
    assert windows == ({0: 18, 128: 18} if name == "gpt-oss-120b" else {0: one.with_attention})
    assert (one.window, one.window_layers) == ((128, 18) if name == "gpt-oss-120b" else (0, 0))
