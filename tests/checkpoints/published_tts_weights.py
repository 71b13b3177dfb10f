"""Names and shapes of Qwen3-TTS-12Hz's weights; see `published_weights`."""

from __future__ import annotations

from tests.checkpoints.published_weights import (
    Shapes,
    attention,
    biased,
    code_predictor,
    gated,
    normed,
    pre_transformer,
    projection,
    repeated,
    under,
    upsampling_and_decoder,
)

TALKER_TENSORS = {"0b6": 402, "1b7": 404}
"""The larger size has a projection into the code predictor."""
CODEC_DECODER_TENSORS = 271


def qwen3_tts(variant: str, size: str) -> Shapes:
    """The weights beside `config.json`."""
    hidden, inner = {"1b7": (2048, 6144), "0b6": (1024, 3072)}[size]
    layer = attention(hidden, 2048, 1024) | under("mlp.", gated(hidden, inner))
    shapes = {
        "talker.model.codec_embedding.weight": (3072, hidden),
        "talker.model.text_embedding.weight": (151936, 2048),
        **repeated("talker.model.layers.", 28, layer),
        "talker.model.norm.weight": (hidden,),
        "talker.codec_head.weight": (3072, hidden),
        **under("talker.text_projection.", projection(2048, 2048, hidden)),
        **under("talker.code_predictor.", code_predictor(hidden)),
    }
    if variant == "base":
        shapes |= under("speaker_encoder.", speaker_encoder(hidden))
    return shapes


def speaker_encoder(outputs: int) -> Shapes:
    """ECAPA-TDNN with 512 channels; each of its three blocks has seven branches."""
    block = {
        **biased("tdnn1.conv", 512, 512, 1),
        **repeated("res2net_block.blocks.", 7, biased("conv", 64, 64, 3)),
        **biased("tdnn2.conv", 512, 512, 1),
        **biased("se_block.conv1", 128, 512, 1),
        **biased("se_block.conv2", 512, 128, 1),
    }
    shapes = biased("blocks.0.conv", 512, 128, 5)
    for index in (1, 2, 3):
        shapes |= under(f"blocks.{index}.", block)
    return {
        **shapes,
        **biased("mfa.conv", 1536, 1536, 1),
        **biased("asp.tdnn.conv", 128, 4608, 1),
        **biased("asp.conv", 1536, 128, 1),
        **biased("fc", outputs, 3072, 1),
    }


def codec() -> Shapes:
    """The weights in `speech_tokenizer`, the same for all variants and sizes."""
    decoder = {
        **under("quantizer.rvq_first.", _quantizer(1)),
        **under("quantizer.rvq_rest.", _quantizer(15)),
        **biased("pre_conv.conv", 1024, 512, 3),
        **pre_transformer(512, 1024),
        **biased("pre_transformer.input_proj", 512, 1024),
        **biased("pre_transformer.output_proj", 1024, 512),
        **upsampling_and_decoder(),
    }
    return under("decoder.", decoder) | under("encoder.", _encoder())


def _quantizer(codebooks: int) -> Shapes:
    table = {"_codebook.cluster_usage": (2048,), "_codebook.embedding_sum": (2048, 256)}
    return {
        "input_proj.weight": (256, 512, 1),
        "output_proj.weight": (512, 256, 1),
        **repeated("vq.layers.", codebooks, table),
    }


def _encoder() -> Shapes:
    """Mimi's: convolutions, eight layers of attention, and the quantizer with 32 codebooks."""
    shapes: Shapes = biased("encoder.layers.0.conv", 64, 1, 7)
    width = 64
    for index, rate in zip((1, 4, 7, 10), (4, 5, 6, 8), strict=True):
        shapes |= biased(f"encoder.layers.{index}.block.1.conv", width // 2, width, 3)
        shapes |= biased(f"encoder.layers.{index}.block.3.conv", width, width // 2, 1)
        shapes |= biased(f"encoder.layers.{index + 2}.conv", 2 * width, width, 2 * rate)
        width *= 2
    layer = {
        **{f"self_attn.{name}_proj.weight": (512, 512) for name in "qkvo"},
        "mlp.fc1.weight": (2048, 512),
        "mlp.fc2.weight": (512, 2048),
        "self_attn_layer_scale.scale": (512,),
        "mlp_layer_scale.scale": (512,),
        **normed("input_layernorm", 512),
        **normed("post_attention_layernorm", 512),
    }
    table = {
        "codebook.cluster_usage": (2048,),
        "codebook.embed_sum": (2048, 256),
        "codebook.initialized": (1,),
    }
    for kind, codebooks in (("semantic", 1), ("acoustic", 31)):
        prefix = f"quantizer.{kind}_residual_vector_quantizer."
        shapes |= {
            f"{prefix}input_proj.weight": (256, 512, 1),
            f"{prefix}output_proj.weight": (512, 256, 1),
            **repeated(f"{prefix}layers.", codebooks, table),
        }
    return {
        **shapes,
        **biased("encoder.layers.14.conv", 512, 1024, 3),
        **repeated("encoder_transformer.layers.", 8, layer),
        "downsample.conv.weight": (512, 512, 4),
    }
