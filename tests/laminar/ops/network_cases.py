"""Calls of the functions of networks, mathematics, linear algebra and images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .case import Case, b, c, f, i, rng, u


def networks() -> Iterator[Case]:
    yield c("conv", f(2, 5, 6, 3), f(3, 3, 3, 4))
    yield c("conv", f(2, 5, 6, 3), f(3, 2, 3, 4), strides=2, padding="same")
    yield c("conv", f(2, 9, 3), f(3, 3, 4), dilation_rate=2)
    yield c("conv", f(2, 4, 5, 5), f(3, 3, 2, 4), data_format="channels_first", padding="same")
    yield c("conv", f(1, 3, 3, 3, 2), f(2, 2, 2, 2, 3))
    first: Any = {"data_format": "channels_first"}
    yield c("depthwise_conv", f(2, 5, 5, 3), f(3, 3, 3, 2))
    yield c("depthwise_conv", f(2, 3, 5, 5), f(3, 3, 3, 2), strides=2, padding="same", **first)
    yield c("separable_conv", f(2, 5, 5, 3), f(3, 3, 3, 2), f(1, 1, 6, 4))
    yield c("conv_transpose", f(2, 4, 3, 3), f(3, 3, 5, 3), strides=2)
    yield c("conv_transpose", f(2, 4, 3, 3), f(3, 3, 5, 3), strides=2, padding="same")
    yield c("conv_transpose", f(2, 4, 3), f(3, 5, 3), 2, "same", output_padding=1)
    yield c("conv_transpose", f(2, 3, 3, 3), f(3, 3, 5, 3), strides=2, **first)
    yield c("max_pool", f(2, 6, 6, 3), 2, strides=2)
    yield c("max_pool", f(2, 6, 6, 3), (3, 2), strides=1, padding="same")
    yield c("max_pool", f(2, 3, 6, 6), 2, strides=2, **first)
    yield c("average_pool", f(2, 5, 5, 3), 3, strides=2, padding="same")
    yield c("average_pool", f(2, 7, 3), 2, strides=2)
    yield c("adaptive_average_pool", f(2, 5, 6, 3), (2, 3))
    yield c("adaptive_max_pool", f(2, 3, 5, 6), (3, 2), **first)
    yield c("batch_normalization", f(2, 3, 4), f(4), u(4), -1, f(4), f(4))
    yield c("batch_normalization", f(2, 3, 4), f(3), u(3), 1)
    yield c("layer_normalization", f(2, 3, 4), gamma=f(4), beta=f(4))
    yield c("layer_normalization", f(2, 3, 4), axis=(1, 2))
    yield c("rms_normalization", f(2, 3), scale=f(3))
    yield c("moments", f(3, 4), 0)
    yield c("moments", f(3, 4), (0, 1), keepdims=True)
    yield c("normalize", f(3, 4), axis=0)
    yield c("normalize", f(3, 4), order=3)
    yield c("softmax", f(2, 3, 4), axis=(1, 2))
    yield c("softmax", f(2, 3), axis=0)
    yield c("glu", f(4, 6), axis=1)
    chances = u(4, 3)
    hot = np.eye(3, dtype="float32")[[0, 2, 1, 1]]
    for logits in (True, False):
        yield c("categorical_crossentropy", hot, chances, from_logits=logits)
        yield c("categorical_crossentropy", hot, chances, from_logits=logits, axis=0)
        yield c("sparse_categorical_crossentropy", i(4) % 3, chances, from_logits=logits)
        yield c("sparse_categorical_crossentropy", i(4, 1) % 3, chances, from_logits=logits)
        yield c("binary_crossentropy", hot, chances, from_logits=logits)
    yield c("categorical_crossentropy", hot.astype("int32"), chances)
    yield c("one_hot", i(3), 6)
    yield c("one_hot", i(2, 3), 4, axis=1)
    yield c("one_hot", np.array([-1, 2]), 3)
    yield c("multi_hot", i(2, 3), 7)
    yield c("multi_hot", i(3), 7)
    q, k = f(2, 3, 4, 5), f(2, 6, 4, 5)
    yield c("dot_product_attention", q, k, f(2, 6, 4, 5))
    yield c("dot_product_attention", q, q, q, is_causal=True)
    yield c("dot_product_attention", q, k, k, bias=f(2, 4, 3, 6), scale=0.3)
    yield c("dot_product_attention", q, k[:, :, :2], k[:, :, :2])
    yield c("dot_product_attention", q, k, k, mask=b(2, 1, 3, 6) | (np.arange(6) == 0))
    labels = np.array([[1, 2, 1], [2, 2, 0]])
    lengths = np.array([3, 2]), np.array([8, 6])
    yield c("ctc_loss", labels, f(2, 8, 4), *lengths, rtol=1e-4)
    yield c("ctc_decode", f(2, 6, 4), np.array([6, 4]))
    yield c("ctc_decode", f(2, 6, 4), np.array([6, 4]), merge_repeated=False)
    yield c("psnr", u(2, 4), u(2, 4), 1.0)
    yield c("unfold", f(2, 3, 4, 4), (2, 3), stride=2, padding=1)
    yield c("fold", f(2, 12, 9), (4, 4), 2)
    yield c("fold", f(2, 12, 4), (5, 5), 2, padding=1, stride=3)
    yield c("depth_to_space", f(2, 2, 3, 8), 2)
    yield c("space_to_depth", f(2, 4, 4, 3), 2)
    yield c("depth_to_space", f(2, 8, 3, 2), 2, data_format="channels_first")


def mathematics() -> Iterator[Case]:
    ids = np.array([0, 0, 1, 2, 2, 2])
    for name in ("segment_sum", "segment_max", "segment_min", "segment_prod"):
        yield c(name, f(6, 2), ids, num_segments=3)
    yield c("top_k", f(3, 5), 2)
    yield c("in_top_k", np.array([1, 2, 0]), f(3, 4), 2)
    yield c("cdist", f(3, 4), f(2, 4))
    yield c("extract_sequences", f(2, 10), 4, 3)
    yield c("fft", (f(2, 6), f(2, 6)), rtol=1e-4)
    yield c("fft2", (f(3, 4), f(3, 4)), rtol=1e-4)
    yield c("ifft2", (f(3, 4), f(3, 4)))
    yield c("rfft", f(2, 8))
    yield c("rfft", f(2, 8), fft_length=5)
    yield c("rfft", f(2, 7), fft_length=9)
    yield c("irfft", (f(2, 5), f(2, 5)))
    yield c("irfft", (f(2, 5), f(2, 5)), fft_length=7)
    yield c("stft", f(2, 20), 8, 4, 8, rtol=1e-4)
    yield c("stft", f(2, 20), 6, 4, 8, center=False, window=None, rtol=1e-4)
    yield c("stft", f(20), 8, 4, 8, window="hamming", rtol=1e-4, static=True)
    yield c("istft", (f(2, 4, 5), f(2, 4, 5)), 8, 2, 8, rtol=1e-3)
    yield c("istft", (f(2, 5, 9), f(2, 5, 9)), 8, 4, 16, length=20, rtol=1e-3)
    yield c("view_as_complex", f(3, 2))
    yield c("view_as_real", f(3) + 1j * f(3))


def linear_algebra() -> Iterator[Case]:
    a = f(4, 4)
    s = np.round(a @ a.T + 4 * np.eye(4, dtype="float32"), 3)
    yield c("cholesky", s)
    yield c("cholesky", s, upper=True)
    yield c("cholesky_inverse", np.tril(f(3, 3)) + 2 * np.eye(3, dtype="float32"), rtol=1e-4)
    yield c("det", a, rtol=1e-4)
    yield c("slogdet", a, rtol=1e-4)
    yield c("logdet", s)
    yield c("inv", s)
    yield c("pinv", f(4, 3), rtol=1e-4)
    yield c("solve", s, f(4, 2))
    yield c("solve", s, f(4))
    yield c("solve_triangular", np.tril(s), f(4, 2), lower=True)
    yield c("lstsq", f(5, 3), f(5), rtol=1e-3)
    yield c("matrix_rank", a, static=True)
    for order, axis in (("fro", None), (1, (0, 1)), (2, None), (np.inf, None), (3, 1)):
        yield c("norm", f(3, 4), ord=order, axis=axis)
    yield c("lu_factor", a)
    yield c("lu_factor", f(2, 3, 3))
    yield c("eigh", s, rtol=1e-3)


def images() -> Iterator[Case]:
    for method in ("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5"):
        for size, antialias in (((6, 5), False), ((3, 2), True)):
            options: Any = {"interpolation": method, "antialias": antialias}
            yield c("image.resize", u(1, 4, 5, 2), size, rtol=1e-4, **options)
    yield c("image.resize", u(2, 6, 8, 1), (5, 5), crop_to_aspect_ratio=True, rtol=1e-4)
    padded: Any = {"pad_to_aspect_ratio": True, "fill_value": 0.5}
    yield c("image.resize", u(2, 6, 8, 1), (8, 4), rtol=1e-4, **padded)
    yield c("image.resize", u(2, 8, 6, 1), (4, 8), rtol=1e-4, **padded)
    yield c("image.resize", u(3, 6, 7), (4, 4), data_format="channels_first", rtol=1e-4)
    yield c("image.rgb_to_grayscale", u(2, 3, 3, 3))
    yield c("image.rgb_to_grayscale", rng.integers(0, 255, (2, 3, 3, 3)).astype("uint8"))
    yield c("image.rgb_to_hsv", u(2, 3, 3, 3))
    yield c("image.rgb_to_hsv", u(3, 3, 3), data_format="channels_first")
    yield c("image.hsv_to_rgb", u(2, 3, 3, 3))
    yield c("image.pad_images", u(2, 3, 4, 1), 1, 2, target_height=6, target_width=7)
    yield c("image.crop_images", u(2, 6, 7, 1), 1, 2, target_height=4, target_width=5)
    yield c("image.crop_images", u(6, 7, 1), 1, 2, 2, 1, static=True)
    yield c("image.extract_patches", u(2, 6, 6, 2), 3)
    yield c("image.extract_patches", u(2, 5, 5, 2), (3, 2), strides=2, padding="same")
    yield c("image.extract_patches_3d", u(1, 4, 4, 4, 1), 2)
    places = np.round(rng.uniform(-4, 9, (2, 20)), 3).astype("float32")
    matrices = [[0.9, 0.1, 0.5, -0.2, 1.1, -1, 0, 0], [1.2, 0, 0, 0, 0.8, 0, 0, 0]]
    moves = np.array(matrices, "float32")
    for mode in ("constant", "nearest", "wrap", "mirror", "reflect"):
        around: Any = {"fill_mode": mode, "fill_value": 0.3}
        for order in (0, 1):
            yield c("image.map_coordinates", u(5, 6), places, order, static=True, **around)
        yield c("image.affine_transform", u(2, 4, 5, 1), moves, rtol=1e-4, fill_mode=mode)
    start = np.array([[[0, 0], [0, 5], [6, 0], [6, 5]]], "float32")
    end = np.array([[[1, 0], [0, 5], [5, 1], [6, 4]]], "float32")
    yield c("image.perspective_transform", u(1, 6, 7, 2), start, end, rtol=1e-3)
    yield c("image.gaussian_blur", u(2, 5, 5, 2), (3, 5), (1.0, 0.5), data_format="channels_last")
    yield c("image.sobel_edges", u(2, 4, 4, 2))
    yield c("image.ssim", u(2, 12, 12, 1), u(2, 12, 12, 1), rtol=1e-4)
    factors = np.array([1.5, 0.7], "float32"), np.array([0.3, -0.4], "float32")
    for method in ("linear", "cubic", "lanczos3"):
        shape = (1, 6, 4, 1)
        args = (u(1, 4, 6, 1), shape, *factors, (1, 2), method)
        yield c("image.scale_and_translate", *args, rtol=1e-4)
