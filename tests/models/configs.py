"""Shapes of public models as their config.json has them, with parameters as published (10^9), total and active.

Figures are those of model cards, reports and files of weights; vendors count the embedding of the input, both tables
or none as active, and modules that predict further tokens as part of the total or not.
"""

from typing import Any

JUNK = {  # what every file has and no shape depends on
    "architectures": ["ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 0,
    "eos_token_id": [1, 2], "initializer_range": 0.02, "max_position_embeddings": 131072, "rms_norm_eps": 1e-06,
    "rope_scaling": {"factor": 40, "original_max_position_embeddings": 4096, "type": "yarn"}, "rope_theta": 10000,
    "torch_dtype": "bfloat16", "transformers_version": "4.57.0", "use_cache": True,
}  # fmt: skip


def plain(kind: str, layers: int, hidden: int, heads: tuple[int, ...], ffn: int, vocab: int, **more: Any) -> dict:
    """A configuration; heads are those of queries, those of keys, and the size of one if not hidden / heads."""
    table = JUNK | {"model_type": kind, "num_hidden_layers": layers, "hidden_size": hidden}
    table |= {"num_attention_heads": heads[0], "num_key_value_heads": heads[1], "intermediate_size": ffn}
    table |= {"head_dim": heads[2]} if len(heads) > 2 else {}
    return table | {"vocab_size": vocab, "tie_word_embeddings": False, "hidden_act": "silu"} | more


def latent(q: int | None, kv: int = 512, nope: int = 128, rope: int = 64, value: int = 128) -> dict[str, Any]:
    names = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    return dict(zip(names, (q, kv, nope, rope, value), strict=True))


def deepseek(experts: int, top: int, ffn: int, dense: int, **more: Any) -> dict[str, Any]:
    moe = {"n_routed_experts": experts, "num_experts_per_tok": top, "moe_intermediate_size": ffn, "n_shared_experts": 1}
    moe |= {"first_k_dense_replace": dense, "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "ep_size": 1}
    return moe | {"routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "topk_method": "noaux_tc"} | more


def qwen_moe(experts: int, top: int, ffn: int, shared: int = 0, **more: Any) -> dict[str, Any]:
    moe = {"num_experts": experts, "num_experts_per_tok": top, "moe_intermediate_size": ffn, "decoder_sparse_step": 1}
    moe |= {"mlp_only_layers": [], "router_aux_loss_coef": 0.001, "use_sliding_window": False, "max_window_layers": 48}
    return moe | ({"shared_expert_intermediate_size": shared} if shared else {}) | more


def local_moe(experts: int, top: int, **more: Any) -> dict[str, Any]:
    return {"num_local_experts": experts, "num_experts_per_tok": top, "router_aux_loss_coef": 0.001} | more


def delta(keys: int, values: int, interval: int = 4, **more: Any) -> dict[str, Any]:
    table = {"linear_num_key_heads": keys, "linear_num_value_heads": values, "linear_key_head_dim": 128}
    table |= {"linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "full_attention_interval": interval}
    return table | {"attn_output_gate": True, "partial_rotary_factor": 0.25, "mamba_ssm_dtype": "float32"} | more


def ling(experts: int, top: int, ffn: int, dense: int, **more: Any) -> dict[str, Any]:
    moe = {"num_experts": experts, "num_experts_per_tok": top, "moe_intermediate_size": ffn, "num_shared_experts": 1}
    moe |= {"moe_shared_expert_intermediate_size": ffn, "first_k_dense_replace": dense, "n_group": 8, "topk_group": 4}
    return moe | {"score_function": "sigmoid", "router_dtype": "fp32", "num_nextn_predict_layers": 0} | more


def nemotron(pattern: str, hidden: int, heads: tuple[int, ...], ffn: int, mamba: int, **more: Any) -> dict[str, Any]:
    table = plain("nemotron_h", len(pattern), hidden, heads, ffn, 131072, hybrid_override_pattern=pattern)
    table |= {"mamba_num_heads": mamba, "mamba_head_dim": 64, "n_groups": 8, "ssm_state_size": 128, "expand": 2}
    table |= {"conv_kernel": 4, "chunk_size": 128, "mlp_hidden_act": "relu2", "time_step_limit": [0.0, 1e9]}
    return table | {"num_logits_to_keep": 1, "time_step_rank": 256, "mamba_hidden_act": "silu"} | more


def windowed(period: int, layers: int) -> dict[str, Any]:
    kinds = ["full_attention" if (i + 1) % period == 0 else "sliding_attention" for i in range(layers)]
    return {"layer_types": kinds}


def sight(depth: int, hidden: int, heads: int, ffn: int, **more: Any) -> dict[str, Any]:
    table = {"depth": depth, "hidden_size": hidden, "num_heads": heads, "intermediate_size": ffn, "patch_size": 16}
    return table | {"spatial_merge_size": 2, "temporal_patch_size": 2, "model_type": "vision"} | more


def nested(kind: str, text: dict[str, Any], vision: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model_type": kind, "text_config": text, "vision_config": vision, "image_token_id": 151655} | more


QWEN, DS, GLM = 151936, 129280, 151552
KIMI = {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4}
KIMI |= {"kda_layers": [i for i in range(1, 28) if i not in (4, 8, 12, 16, 20, 24, 27)]}
NANO = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
NANO_9B = "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-"
SPARSE = {"use_sparse_attention": True, "sparse_index_dim": 128, "sparse_num_index_heads": 4, "sparse_block_size": 128}
SPARSE |= {"sparse_topk_blocks": 16, "sparse_attention_freq": [0] * 3 + [1] * 57, "sparse_local_block": 1}
MIMO = {"hybrid_layer_pattern": [int(not (i == 0 or (i + 1) % 6 == 0)) for i in range(48)]}
MIMO |= {"swa_num_attention_heads": 64, "swa_num_key_value_heads": 8, "swa_head_dim": 192, "swa_v_head_dim": 128}
V4 = {"q_lora_rank": 1024, "qk_rope_head_dim": 64, "o_lora_rank": 1024, "o_groups": 8, "index_n_heads": 64}
V4 |= {"index_head_dim": 128, "index_topk": 512, "sliding_window": 128, "hc_mult": 4, "hc_sinkhorn_iters": 20}
V4 |= {"compress_ratios": [0, 0, *[4, 128] * 20, 4, 0], "num_hash_layers": 3, "num_nextn_predict_layers": 1}
V4 |= {"n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 6, "moe_intermediate_size": 2048}
DSA = {"index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048}

# fmt: off
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "DeepSeek-V3": ("671 37", plain("deepseek_v3", 61, 7168, (128, 128), 18432, DS, **latent(1536),
        **deepseek(256, 8, 2048, 3, n_group=8, topk_group=4, num_nextn_predict_layers=1, moe_layer_freq=1))),
    "DeepSeek-V3.2": ("671 37", plain("deepseek_v32", 61, 7168, (128, 128), 18432, DS, **latent(1536), **DSA,
        **deepseek(256, 8, 2048, 3, n_group=8, topk_group=4, num_nextn_predict_layers=1, moe_layer_freq=1))),
    "DeepSeek-V4-Flash": ("284 13", plain("deepseek_v4", 43, 4096, (64, 1, 512), 0, DS, **V4)),
    "Kimi-K2": ("1027 32.6", plain("kimi_k2", 61, 7168, (64, 64), 18432, 163840, **latent(1536), **deepseek(384,
        8, 2048, 1, num_nextn_predict_layers=0, moe_layer_freq=1))),
    "Kimi-Linear-48B-A3B": ("49.1 3", plain("kimi_linear", 27, 2304, (32, 32, 72), 9216, 163840, **latent(None),
        linear_attn_config=KIMI, num_experts=256, num_experts_per_token=8, num_shared_experts=1,
        moe_intermediate_size=1024, first_k_dense_replace=1, moe_layer_freq=1, num_expert_group=1, topk_group=1,
        mla_use_nope=True, moe_router_activation_func="sigmoid", moe_renormalize=True)),
    "Moonlight-16B-A3B": ("15.96 2.24", plain("deepseek_v3", 27, 2048, (16, 16), 11264, 163840, **latent(None),
        **deepseek(64, 6, 1408, 1, n_shared_experts=2, moe_layer_freq=1, num_nextn_predict_layers=0))),
    "GLM-4.5": ("355 32", plain("glm4_moe", 92, 5120, (96, 8, 128), 12288, GLM, **deepseek(160, 8, 1536, 3,
        num_nextn_predict_layers=1, use_qk_norm=True, partial_rotary_factor=0.5))),
    "GLM-4.5-Air": ("106.9 12", plain("glm4_moe", 46, 4096, (96, 8, 128), 10944, GLM, **deepseek(128, 8, 1408, 1,
        num_nextn_predict_layers=1, partial_rotary_factor=0.5))),
    "GLM-4.7-Flash": ("30 3", plain("glm4_moe_lite", 47, 2048, (20, 20), 10240, 154880, **latent(768, 512, 192,
        64, 256), **deepseek(64, 4, 1536, 1, num_nextn_predict_layers=1))),
    "GLM-5": ("744 40", plain("glm_moe_dsa", 78, 6144, (64, 64), 12288, 154880, **latent(2048, 512, 192, 64,
        256), **DSA | {"index_n_heads": 32}, **deepseek(256, 8, 2048, 3, num_nextn_predict_layers=1))),
    "Qwen3-8B": ("8.19 8.19", plain("qwen3", 36, 4096, (32, 8, 128), 12288, QWEN, sliding_window=None)),
    "Qwen3-32B": ("32.8 32.8", plain("qwen3", 64, 5120, (64, 8, 128), 25600, QWEN, max_window_layers=64)),
    "Qwen3-30B-A3B": ("30.5 3.3", plain("qwen3_moe", 48, 2048, (32, 4, 128), 6144, QWEN, **qwen_moe(128, 8,
        768))),
    "Qwen3-235B-A22B": ("235 22", plain("qwen3_moe", 94, 4096, (64, 4, 128), 12288, QWEN, **qwen_moe(128, 8,
        1536))),
    "Qwen3-Next-80B-A3B": ("80 3", plain("qwen3_next", 48, 2048, (16, 2, 256), 5120, QWEN, **qwen_moe(512,
        10, 512, 512), **delta(16, 32))),
    "Qwen3.5-397B-A17B": ("397 17", nested("qwen3_5_moe", plain("qwen3_5_moe_text", 60, 4096, (32, 2, 256), 0,
        248320, **qwen_moe(512, 10, 1024, 1024), **delta(16, 64), mtp_num_hidden_layers=1), sight(27, 1152, 16,
        4304, out_hidden_size=4096, num_position_embeddings=2304, deepstack_visual_indexes=[]))),
    "Qwen3-VL-8B": ("8.77 8.77", nested("qwen3_vl", plain("qwen3_vl_text", 36, 4096, (32, 8, 128), 12288, QWEN),
        sight(27, 1152, 16, 4304, out_hidden_size=4096, deepstack_visual_indexes=[8, 16, 24]))),
    "Qwen2.5-VL-7B": ("8.29 8.29", plain("qwen2_5_vl", 28, 3584, (28, 4), 18944, 152064, sliding_window=32768,
        use_sliding_window=False, max_window_layers=28, vision_config=sight(32, 1280, 16, 3420, patch_size=14,
        hidden_act="silu", out_hidden_size=3584, fullatt_block_indexes=[7, 15, 23, 31], window_size=112))),
    "gpt-oss-20b": ("20.91 3.61", plain("gpt_oss", 24, 2880, (64, 8, 64), 2880, 201088, sliding_window=128,
        **local_moe(32, 4, experts_per_token=4), layer_types=["sliding_attention", "full_attention"] * 12)),
    "gpt-oss-120b": ("116.83 5.13", plain("gpt_oss", 36, 2880, (64, 8, 64), 2880, 201088, sliding_window=128,
        **local_moe(128, 4, experts_per_token=4), layer_types=["sliding_attention", "full_attention"] * 18)),
    "Llama-3.1-8B": ("8.03 8.03", plain("llama", 32, 4096, (32, 8), 14336, 128256, pretraining_tp=1)),
    "Llama-3.1-405B": ("405.9 405.9", plain("llama", 126, 16384, (128, 8), 53248, 128256, mlp_bias=False)),
    "Llama-4-Scout": ("109 17", nested("llama4", plain("llama4_text", 48, 5120, (40, 8, 128), 8192, 202048,
        **local_moe(16, 1), intermediate_size_mlp=16384, interleave_moe_layer_step=1, attention_chunk_size=8192,
        no_rope_layers=[1, 1, 1, 0] * 12, moe_layers=list(range(48)), attn_scale=0.1, floor_scale=8192),
        {"num_hidden_layers": 34, "hidden_size": 1408, "num_attention_heads": 16, "intermediate_size": 5632,
        "patch_size": 14, "image_size": 336, "vision_output_dim": 4096, "pixel_shuffle_ratio": 0.5})),
    "Llama-4-Maverick": ("402 17", nested("llama4", plain("llama4_text", 48, 5120, (40, 8, 128), 8192, 202048,
        **local_moe(128, 1), intermediate_size_mlp=16384, interleave_moe_layer_step=2, attention_chunk_size=8192),
        {"num_hidden_layers": 34, "hidden_size": 1408, "num_attention_heads": 16, "intermediate_size": 5632,
        "patch_size": 14, "image_size": 336})),
    "MiniMax-M1": ("456 45.9", plain("minimax_m1", 80, 6144, (64, 8, 128), 9216, 200064, **local_moe(32, 2),
        attn_type_list=[int((i + 1) % 8 == 0) for i in range(80)], shared_intermediate_size=0, rotary_dim=64,
        layernorm_full_attention_alpha=3.5, layernorm_mlp_beta=1.0, shared_moe_mode="sigmoid",
        attn_window_size=-1)),
    "MiniMax-M2.5": ("228.7 10", plain("minimax_m2", 62, 3072, (48, 8, 128), 1536, 200064, **local_moe(256, 8),
        attn_type_list=[1] * 62, num_mtp_modules=3, use_mtp=True, mtp_transformer_layers=1, rotary_dim=64,
        shared_intermediate_size=0, qk_norm_type="per_layer", use_routing_bias=True)),
    "MiniMax-M3": ("428 23.5", nested("minimax_m3_vl", plain("minimax_m3", 60, 6144, (64, 4, 128), 3072, 200064,
        **local_moe(128, 4), dense_intermediate_size=12288, shared_intermediate_size=3072, n_shared_experts=1,
        moe_layer_freq=[0] * 3 + [1] * 57, sparse_attention_config=SPARSE, hidden_act="swigluoai"), {})),
    "Nemotron-3-Nano-30B": ("31.6 3.6", nemotron(NANO, 2688, (32, 2, 128), 1856, 64, n_routed_experts=128,
        num_experts_per_tok=6, moe_intermediate_size=1856, n_shared_experts=1,
        moe_shared_expert_intermediate_size=3712, n_group=1, topk_group=1)),
    "Nemotron-Nano-9B-v2": ("8.89 8.89", nemotron(NANO_9B, 4480, (40, 8, 128), 15680, 128, mamba_head_dim=80)),
    "Ling-mini-2.0": ("16.26 1.43", plain("bailing_moe_v2", 20, 2048, (16, 4, 128), 5120, 157184, **ling(256, 8,
        512, 1))),
    "Ling-flash-2.0": ("103 6.1", plain("bailing_moe_v2", 32, 4096, (32, 4, 128), 9216, 157184, **ling(256, 8,
        1024, 1))),
    "Ring-mini-linear-2.0": ("16.4 1.6", plain("bailing_moe_linear", 20, 2048, (16, 4, 128), 5120, 157184,
        **ling(256, 8, 512, 1), layer_group_size=5, group_norm_size=4, linear_silu=False)),
    "Mistral-7B-v0.3": ("7.25 7.25", plain("mistral", 32, 4096, (32, 8), 14336, 32768, sliding_window=None)),
    "Magistral-Small": ("23.6 23.6", plain("mistral", 40, 5120, (32, 8, 128), 32768, 131072)),
    "Mixtral-8x7B": ("46.7 12.9", plain("mixtral", 32, 4096, (32, 8), 14336, 32000, **local_moe(8, 2))),
    "Gemma-2-9B": ("9.24 9.24", plain("gemma2", 42, 3584, (16, 8, 256), 14336, 256000, tie_word_embeddings=True,
        query_pre_attn_scalar=256, sliding_window=4096, hidden_activation="gelu_pytorch_tanh")),
    "Gemma-3-27B": ("27.43 27.43", {"model_type": "gemma3", "mm_tokens_per_image": 256, "text_config":
        {"model_type": "gemma3_text", "hidden_size": 5376, "num_hidden_layers": 62, "num_attention_heads": 32,
        "num_key_value_heads": 16, "head_dim": 128, "intermediate_size": 21504, "sliding_window": 1024},
        "vision_config": {"hidden_size": 1152, "num_hidden_layers": 27, "num_attention_heads": 16, "patch_size": 14,
        "image_size": 896, "intermediate_size": 4304, "model_type": "siglip_vision_model"}}),
    "Phi-4": ("14.7 14.7", plain("phi3", 40, 5120, (40, 10), 17920, 100352, sliding_window=None)),
    "OLMo-2-32B": ("32.2 32.2", plain("olmo2", 64, 5120, (40, 8), 27648, 100352)),
    "Olmo-3-7B": ("7.30 7.30", plain("olmo3", 32, 4096, (32, 32), 11008, 100278, sliding_window=4096, **windowed(4,
        32))),
    "Granite-4.0-H-Small": ("32.2 9", plain("granitemoehybrid", 40, 4096, (32, 8), 768, 100352, **local_moe(72,
        10), layer_types=["attention" if i in (5, 15, 25, 35) else "mamba" for i in range(40)], mamba_n_heads=128,
        mamba_d_head=64, mamba_n_groups=1, mamba_d_state=128, mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=256,
        shared_intermediate_size=1536, tie_word_embeddings=True, embedding_multiplier=12, logits_scaling=16)),
    "EXAONE-4.0-32B": ("32.0 32.0", plain("exaone4", 64, 5120, (40, 8, 128), 27392, 102400, sliding_window=4096,
        sliding_window_pattern="LLLG")),
    "Hunyuan-A13B": ("80.4 13", plain("hunyuan_v1_moe", 32, 4096, (32, 8), 3072, 128167, num_experts=64,
        moe_topk=[8] * 32, num_shared_expert=[1] * 32, moe_intermediate_size=[3072] * 32, attention_head_dim=128,
        use_mixed_mlp_moe=True, tie_word_embeddings=True, moe_layer_num_skipped=0, cla_share_factor=2,
        use_cla=False)),
    "dots.llm1": ("142.8 14", plain("dots1", 62, 4096, (32, 32, 128), 10944, 152064, **deepseek(128, 6, 1408, 1,
        n_shared_experts=2))),
    "ERNIE-4.5-21B-A3B": ("21.8 3", plain("ernie4_5_moe", 28, 2560, (20, 4), 12288, 103424, moe_num_experts=64,
        moe_k=6, moe_num_shared_experts=2, moe_intermediate_size=1536, moe_layer_start_index=1,
        moe_layer_end_index=27, moe_layer_interval=1, moe_capacity=[64, 64, 64], tie_word_embeddings=True,
        num_nextn_predict_layers=1)),
    "Seed-OSS-36B": ("36.15 36.15", plain("seed_oss", 64, 5120, (80, 8, 128), 27648, 155136)),
    "SmolLM3-3B": ("3.08 3.08", plain("smollm3", 36, 2048, (16, 4), 11008, 128256, tie_word_embeddings=True,
        no_rope_layers=[1, 1, 1, 0] * 9, no_rope_layer_interval=4, layer_types=["full_attention"] * 36)),
    "Step-3": ("316 38", {"model_type": "step3_vl", "text_config": JUNK | {"model_type": "step3_text",
        "hidden_size": 7168, "intermediate_size": 18432, "num_attention_heads": 64, "num_attention_groups": 1,
        "num_hidden_layers": 61, "vocab_size": 128815, "moe_intermediate_size": 5120, "moe_num_experts": 48,
        "moe_top_k": 3, "share_expert_dim": 5120, "share_q_dim": 2048, "head_dim": 256, "moe_layers_enum":
        ",".join(map(str, range(4, 60)))}}),
    "MiMo-7B": ("7.61 7.61", plain("mimo", 36, 4096, (32, 8, 128), 11008, 151680, num_nextn_predict_layers=1)),
    "MiMo-V2-Flash": ("309 15", plain("mimo_v2_flash", 48, 4096, (64, 4, 192), 16384, 152576, v_head_dim=128,
        sliding_window=128, sliding_window_size=128, n_routed_experts=256, num_experts_per_tok=8, n_group=1,
        topk_group=1, moe_intermediate_size=2048, n_shared_experts=None, moe_layer_freq=[0] + [1] * 47, **MIMO)),
}
CATALOGUED = {  # what the catalog calls them
    "DeepSeek-V3": "deepseek-v3", "DeepSeek-V3.2": "deepseek-v3.2", "DeepSeek-V4-Flash": "deepseek-v4-flash",
    "Kimi-K2": "kimi-k2", "Kimi-Linear-48B-A3B": "kimi-linear-48b-a3b", "Moonlight-16B-A3B":
    "moonlight-16b-a3b", "GLM-4.5": "glm-4.7", "GLM-4.5-Air": "glm-4.5-air", "GLM-4.7-Flash": "glm-4.7-flash",
    "GLM-5": "glm-5.2", "Qwen3-8B": "qwen3-8b", "Qwen3-32B": "qwen3-32b", "Qwen3-30B-A3B": "qwen3-30b-a3b",
    "Qwen3-235B-A22B": "qwen3-235b-a22b", "Qwen3-Next-80B-A3B": "qwen3-next-80b-a3b", "Qwen3.5-397B-A17B":
    "qwen3.5-397b-a17b", "gpt-oss-20b": "gpt-oss-20b", "gpt-oss-120b": "gpt-oss-120b", "Llama-3.1-8B":
    "llama3-8b", "Llama-3.1-405B": "llama3-405b", "Llama-4-Scout": "llama4-scout", "Llama-4-Maverick":
    "llama4-maverick", "MiniMax-M2.5": "minimax-m2.5", "MiniMax-M3": "minimax-m3", "Nemotron-Nano-9B-v2":
    "nemotron-nano-9b-v2", "Nemotron-3-Nano-30B": "nemotron-3-nano", "Ling-mini-2.0": "ling-mini-2.0",
    "Ling-flash-2.0": "ling-flash-2.0", "Ring-mini-linear-2.0": "ring-mini-linear-2.0", "MiMo-V2-Flash":
    "mimo-v2-flash",
}
