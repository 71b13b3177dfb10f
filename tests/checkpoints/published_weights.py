"""Names and shapes of the published checkpoints' weights, as lists of their files give them.

Where such a list says how many tensors and parameters there are, that is said here as well: it
holds what is written down here to what is published.
"""

from __future__ import annotations

from collections.abc import Mapping

Shape = tuple[int, ...]
Shapes = dict[str, Shape]

QWEN3_OMNI_TENSORS = 28_010
QWEN3_OMNI_PARAMETERS = 35_259_818_545


def under(prefix: str, shapes: Mapping[str, Shape]) -> Shapes:
    """The same weights with a prefix."""
    return {prefix + name: shape for name, shape in shapes.items()}


def repeated(prefix: str, count: int, shapes: Mapping[str, Shape]) -> Shapes:
    """The weights of numbered parts."""
    return {f"{prefix}{i}.{name}": s for i in range(count) for name, s in shapes.items()}


def biased(name: str, *shape: int) -> Shapes:
    """A weight with a bias for each of its outputs."""
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


def normed(name: str, width: int) -> Shapes:
    """A layer norm."""
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def attention(hidden: int, query: int, key_value: int, head: int | None = 128) -> Shapes:
    """Projections without bias, with norms of queries and keys if a head's width is given."""
    shapes: Shapes = {
        "self_attn.q_proj.weight": (query, hidden),
        "self_attn.k_proj.weight": (key_value, hidden),
        "self_attn.v_proj.weight": (key_value, hidden),
        "self_attn.o_proj.weight": (hidden, query),
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
    }
    if head is not None:
        shapes |= {"self_attn.q_norm.weight": (head,), "self_attn.k_norm.weight": (head,)}
    return shapes


def gated(hidden: int, inner: int) -> Shapes:
    """A gated feed-forward."""
    return {
        "gate_proj.weight": (inner, hidden),
        "up_proj.weight": (inner, hidden),
        "down_proj.weight": (hidden, inner),
    }


def experts(hidden: int, inner: int, count: int = 128) -> Shapes:
    """A router and the experts, one by one."""
    each = repeated("mlp.experts.", count, gated(hidden, inner))
    return {"mlp.gate.weight": (count, hidden), **each}


def code_predictor(talker_hidden: int) -> Shapes:
    """15 tables and heads around five layers."""
    layer = attention(1024, 2048, 1024) | under("mlp.", gated(1024, 3072))
    shapes = {
        **repeated("model.layers.", 5, layer),
        "model.norm.weight": (1024,),
        **repeated("model.codec_embedding.", 15, {"weight": (2048, talker_hidden)}),
        **repeated("lm_head.", 15, {"weight": (2048, 1024)}),
    }
    if talker_hidden != 1024:
        shapes |= biased("small_to_mtp_projection", 1024, talker_hidden)
    return shapes


def projection(inputs: int, inner: int, outputs: int) -> Shapes:
    """Two linear maps."""
    return biased("linear_fc1", inner, inputs) | biased("linear_fc2", outputs, inner)


def qwen3_omni() -> Shapes:
    """Qwen3-Omni-30B-A3B-Instruct."""
    thinker_layer = attention(2048, 4096, 512) | experts(2048, 768)
    talker_layer = {
        **attention(1024, 2048, 256),
        **experts(1024, 384),
        **under("mlp.shared_expert.", gated(1024, 768)),
        "mlp.shared_expert_gate.weight": (1, 1024),
    }
    return {
        **under("thinker.audio_tower.", _audio_tower()),
        **under("thinker.visual.", _visual()),
        "thinker.model.embed_tokens.weight": (152064, 2048),
        **repeated("thinker.model.layers.", 48, thinker_layer),
        "thinker.model.norm.weight": (2048,),
        "thinker.lm_head.weight": (152064, 2048),
        "talker.model.codec_embedding.weight": (3072, 1024),
        **repeated("talker.model.layers.", 20, talker_layer),
        "talker.model.norm.weight": (1024,),
        "talker.codec_head.weight": (3072, 1024),
        **under("talker.text_projection.", projection(2048, 2048, 1024)),
        **under("talker.hidden_projection.", projection(2048, 2048, 1024)),
        **under("talker.code_predictor.", code_predictor(1024)),
        "code2wav.code_embedding.weight": (32768, 1024),
        **under("code2wav.", pre_transformer(1024, 3072)),
        **under("code2wav.", upsampling_and_decoder()),
    }


def _audio_tower() -> Shapes:
    layer = {
        **biased("self_attn.q_proj", 1280, 1280),
        **biased("self_attn.k_proj", 1280, 1280),
        **biased("self_attn.v_proj", 1280, 1280),
        **biased("self_attn.out_proj", 1280, 1280),
        **biased("fc1", 5120, 1280),
        **biased("fc2", 1280, 5120),
        **normed("self_attn_layer_norm", 1280),
        **normed("final_layer_norm", 1280),
    }
    return {
        **biased("conv2d1", 480, 1, 3, 3),
        **biased("conv2d2", 480, 480, 3, 3),
        **biased("conv2d3", 480, 480, 3, 3),
        "conv_out.weight": (1280, 7680),
        **repeated("layers.", 32, layer),
        **normed("ln_post", 1280),
        **biased("proj1", 1280, 1280),
        **biased("proj2", 2048, 1280),
    }


def _visual() -> Shapes:
    block = {
        **biased("attn.qkv", 3456, 1152),
        **biased("attn.proj", 1152, 1152),
        **biased("mlp.linear_fc1", 4304, 1152),
        **biased("mlp.linear_fc2", 1152, 4304),
        **normed("norm1", 1152),
        **normed("norm2", 1152),
    }
    maps = biased("mlp.0", 4608, 4608) | biased("mlp.2", 2048, 4608)
    return {
        **biased("patch_embed.proj", 1152, 3, 2, 16, 16),
        "pos_embed.weight": (2304, 1152),
        **repeated("blocks.", 27, block),
        **under("merger.", normed("ln_q", 1152) | maps),
        **repeated("merger_list.", 3, normed("ln_q", 4608) | maps),
    }


def pre_transformer(hidden: int, inner: int) -> Shapes:
    """The layers over frames, without projections in and out."""
    layer = {
        **attention(hidden, 1024, 1024, head=None),
        **under("mlp.", gated(hidden, inner)),
        "self_attn_layer_scale.scale": (hidden,),
        "mlp_layer_scale.scale": (hidden,),
    }
    return {
        **repeated("pre_transformer.layers.", 8, layer),
        "pre_transformer.norm.weight": (hidden,),
    }


def upsampling_and_decoder() -> Shapes:
    """What Qwen3-Omni's Code2Wav and Qwen3-TTS's codec have in common."""
    wider = {
        **biased("0.conv", 1024, 1024, 2),
        **biased("1.dwconv.conv", 1024, 1, 7),
        **normed("1.norm", 1024),
        **biased("1.pwconv1", 4096, 1024),
        **biased("1.pwconv2", 1024, 4096),
        "1.gamma": (1024,),
    }
    shapes = repeated("upsample.", 2, wider) | biased("decoder.0.conv", 1536, 1024, 7)
    width = 1536
    for index, rate in enumerate((8, 5, 4, 3), 1):
        block, half = f"decoder.{index}.block.", width // 2
        shapes |= under(block, {"0.alpha": (width,), "0.beta": (width,)})
        shapes |= {
            f"{block}1.conv.weight": (width, half, 2 * rate),
            f"{block}1.conv.bias": (half,),
        }
        for unit in (2, 3, 4):
            shapes |= under(f"{block}{unit}.", _residual_unit(half))
        width = half
    return {
        **shapes,
        "decoder.5.alpha": (96,),
        "decoder.5.beta": (96,),
        **biased("decoder.6.conv", 1, 96, 7),
    }


def _residual_unit(width: int) -> Shapes:
    acts = {f"act{i}.{name}": (width,) for i in (1, 2) for name in ("alpha", "beta")}
    return acts | biased("conv1.conv", width, width, 7) | biased("conv2.conv", width, width, 1)
