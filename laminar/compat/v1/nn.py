"""`tf.nn`: what neural networks are made of."""

from __future__ import annotations

import importlib
from typing import Any

from .array import NAMES as ARRAYS
from .face import UNARY, Line, face

NAMES: dict[str, Line] = {
    "conv1d": ".convolutions:conv1d",
    "conv2d": ".convolutions:conv2d",
    "conv3d": ".convolutions:conv3d",
    "conv2d_transpose": ".convolutions:conv2d_transpose",
    "ctc_beam_search_decoder": ".ctc:ctc_beam_search_decoder",
    "ctc_beam_search_decoder_v2": ".ctc:ctc_beam_search_decoder_v2",
    "ctc_greedy_decoder": ".ctc:ctc_greedy_decoder",
    "ctc_loss": ".ctc:ctc_loss",
    "depthwise_conv2d": ".convolutions:depthwise_conv2d",
    "separable_conv2d": ".convolutions:separable_conv2d",
    "max_pool": ".pooling:max_pool",
    "avg_pool": ".pooling:avg_pool",
    "softmax": ".neural:softmax",
    "log_softmax": ".neural:log_softmax",
    "leaky_relu": ".neural:leaky_relu",
    "bias_add": ".neural:bias_add",
    "xw_plus_b": ".neural:xw_plus_b",
    "relu_layer": ".neural:relu_layer",
    "dropout": ".neural:dropout",
    "softmax_cross_entropy_with_logits": ".neural:softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2": ".neural:softmax_cross_entropy_with_logits_v2",
    "sparse_softmax_cross_entropy_with_logits": ".neural:sparse_softmax_cross_entropy_with_logits",
    "sigmoid_cross_entropy_with_logits": ".neural:sigmoid_cross_entropy_with_logits",
    "weighted_cross_entropy_with_logits": ".neural:weighted_cross_entropy_with_logits",
    "l2_loss": ".neural:l2_loss",
    "l2_normalize": ".neural:l2_normalize",
    "moments": ".neural:moments",
    "batch_normalization": ".neural:batch_normalization",
    "local_response_normalization": ".neural:local_response_normalization",
    "embedding_lookup": ".embeddings:embedding_lookup",
    "embedding_lookup_sparse": ".embeddings:embedding_lookup_sparse",
    "safe_embedding_lookup_sparse": ".embeddings:safe_embedding_lookup_sparse",
    "depth_to_space": ARRAYS["depth_to_space"],
    "space_to_batch": ARRAYS["space_to_batch"],
    "space_to_depth": ARRAYS["space_to_depth"],
    "zero_fraction": ".neural:zero_fraction",
    "in_top_k": ".neural:in_top_k",
    "top_k": ".neural:top_k",
    "crelu": ".neural:crelu",
    "lrn": ".neural:local_response_normalization",
    "depthwise_conv2d_native": ".convolutions:depthwise_conv2d_native",
    "relu": ("features, name=None", "op:Relu"),
    "relu6": ("features, name=None", "op:Relu6"),
    "elu": ("features, name=None", "op:Elu"),
    "selu": ("features, name=None", "op:Selu"),
    "softplus": ("features, name=None", "op:Softplus"),
    "softsign": ("features, name=None", "op:Softsign"),
    "sigmoid": (UNARY, "op:Sigmoid"),
    "tanh": (UNARY, "op:Tanh"),
    "log_sigmoid": (UNARY, "op:LogSigmoid"),
    "swish": ("features", "ops:silu"),
    "sampled_softmax_loss": ".sampling:sampled_softmax_loss",
    "nce_loss": ".sampling:nce_loss",
    **{
        f"{kind}_candidate_sampler": f".sampling:{kind}_candidate_sampler"
        for kind in ("all", "fixed_unigram", "log_uniform", "uniform")
    },
    "compute_accidental_hits": ".sampling:compute_accidental_hits",
    "collapse_repeated": ".ctc:collapse_repeated",
    "ctc_unique_labels": ".ctc:ctc_unique_labels",
    "compute_average_loss": ".loss_functions:compute_average_loss",
    "scale_regularization_loss": ".loss_functions:scale_regularization_loss",
    "bidirectional_dynamic_rnn": ".rnn:bidirectional_dynamic_rnn",
    "dynamic_rnn": ".rnn:dynamic_rnn",
    "raw_rnn": ".rnn:raw_rnn",
    "static_bidirectional_rnn": ".rnn:static_bidirectional_rnn",
    "static_rnn": ".rnn:static_rnn",
    "batch_norm_with_global_normalization": ".moments:batch_norm_with_global_normalization",
    "fused_batch_norm": ".moments:fused_batch_norm",
    "log_poisson_loss": ".moments:log_poisson_loss",
    "normalize_moments": ".moments:normalize_moments",
    "sufficient_statistics": ".moments:sufficient_statistics",
    "weighted_moments": ".moments:weighted_moments",
    "avg_pool2d": ".pooling:avg_pool",
    "max_pool2d": ".pooling:max_pool",
    "silu": ("features", "ops:silu"),
    "max_pool3d": ".pooling:max_pool",
    "avg_pool3d": ".pooling:avg_pool",
    "atrous_conv2d": ".convolutions:atrous_conv2d",
    "atrous_conv2d_transpose": ".convolutions:atrous_conv2d_transpose",
    "conv1d_transpose": ".convolutions:conv1d_transpose",
    "conv2d_backprop_filter": ".convolutions:conv2d_backprop_filter",
    "conv2d_backprop_input": ".convolutions:conv2d_backprop_input",
    "conv3d_backprop_filter": ".convolutions:conv3d_backprop_filter",
    "conv3d_transpose": ".convolutions:conv3d_transpose",
    "conv_transpose": ".convolutions:conv_transpose",
    "convolution": ".convolutions:convolution",
    "conv3d_backprop_filter_v2": ".convolutions:conv3d_backprop_filter",
    "depthwise_conv2d_backprop_filter": ".convolutions:depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_native_backprop_filter": ".convolutions:depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input": ".convolutions:depthwise_conv2d_backprop_input",
    "depthwise_conv2d_native_backprop_input": ".convolutions:depthwise_conv2d_backprop_input",
    "avg_pool1d": ".pooling:avg_pool1d",
    "dilation2d": ".pooling:dilation2d",
    "erosion2d": ".pooling:erosion2d",
    "max_pool1d": ".pooling:max_pool1d",
    "max_pool_with_argmax": ".pooling:max_pool_with_argmax",
    "pool": ".pooling:pool",
    "avg_pool_v2": ".pooling:avg_pool",
    "max_pool_v2": ".pooling:max_pool",
}

_get, _names = face(__name__, NAMES)


def __getattr__(name: str) -> Any:
    return importlib.import_module(".rnn_cell", __package__) if name == "rnn_cell" else _get(name)


def __dir__() -> list[str]:
    return sorted({*_names(), "rnn_cell"})
