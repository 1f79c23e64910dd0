"""Every line of every table leads somewhere, and takes the arguments that TensorFlow documents."""

from __future__ import annotations

import inspect
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

import laminar.compat.v1 as tf

MODULES = sorted(tf._MODULES)

# Arguments by TensorFlow 1.15's documentation: required ones, then those given by name.
DOCUMENTED = {
    "add": "x y name",
    "argmax": "input axis name dimension output_type",
    "boolean_mask": "tensor mask name axis",
    "case": "pred_fn_pairs default exclusive strict name",
    "clip_by_norm": "t clip_norm axes name",
    "concat": "values axis name",
    "cond": "pred true_fn false_fn strict name fn1 fn2",
    "constant": "value dtype shape name verify_shape",
    "cumsum": "x axis exclusive reverse name",
    "expand_dims": "input axis name dim",
    "gather": "params indices validate_indices name axis batch_dims",
    "get_variable": "name shape dtype initializer regularizer trainable collections caching_device "
    "partitioner validate_shape use_resource custom_getter constraint synchronization aggregation",
    "gradients": "ys xs grad_ys name colocate_gradients_with_ops gate_gradients aggregation_method "
    "stop_gradients unconnected_gradients",
    "layers.batch_normalization": "inputs axis momentum epsilon center scale beta_initializer "
    "gamma_initializer moving_mean_initializer moving_variance_initializer training trainable name",
    "layers.conv2d": "inputs filters kernel_size strides padding data_format dilation_rate "
    "activation use_bias kernel_initializer bias_initializer kernel_regularizer trainable name",
    "layers.dense": "inputs units activation use_bias kernel_initializer bias_initializer "
    "kernel_regularizer bias_regularizer activity_regularizer trainable name reuse",
    "losses.softmax_cross_entropy": "onehot_labels logits weights label_smoothing scope "
    "loss_collection reduction",
    "matmul": "a b transpose_a transpose_b adjoint_a adjoint_b a_is_sparse b_is_sparse name",
    "metrics.accuracy": "labels predictions weights metrics_collections updates_collections name",
    "nn.conv2d": "input filter strides padding use_cudnn_on_gpu data_format dilations name filters",
    "nn.dropout": "x keep_prob noise_shape seed name rate",
    "nn.max_pool": "value ksize strides padding data_format name",
    "nn.moments": "x axes shift name keep_dims",
    "nn.softmax": "logits axis name dim",
    "nn.softmax_cross_entropy_with_logits": "_sentinel labels logits dim name",
    "one_hot": "indices depth on_value off_value axis dtype name",
    "pad": "tensor paddings mode name constant_values",
    "placeholder": "dtype shape name",
    "random_uniform": "shape minval maxval dtype seed name",
    "reduce_sum": "input_tensor axis keepdims name reduction_indices keep_dims",
    "squeeze": "input axis name squeeze_dims",
    "summary.scalar": "name tensor collections family",
    "train.AdamOptimizer": "learning_rate beta1 beta2 epsilon use_locking name",
    "train.Saver": "var_list reshape sharded max_to_keep keep_checkpoint_every_n_hours name "
    "restore_sequentially saver_def defer_build allow_empty write_version",
    "train.exponential_decay": "learning_rate global_step decay_steps decay_rate staircase name",
    "train.shuffle_batch": "tensors batch_size capacity min_after_dequeue num_threads seed "
    "enqueue_many shapes allow_smaller_final_batch shared_name name",
    "transpose": "a perm name conjugate",
    "truncated_normal": "shape mean stddev dtype seed name",
    "variable_scope": "name_or_scope default_name values initializer regularizer caching_device "
    "partitioner custom_getter reuse dtype use_resource constraint auxiliary_name_scope",
    "while_loop": "cond body loop_vars shape_invariants parallel_iterations back_prop swap_memory "
    "name maximum_iterations return_same_structure",
}


def module(name: str) -> ModuleType:
    found: ModuleType = getattr(tf, name) if name else tf
    return found


@pytest.mark.parametrize("name", ["", *MODULES])
def test_every_line_leads_somewhere(name: str) -> None:
    face = module(name)
    for key in face.NAMES:
        getattr(face, key)
    assert set(face.NAMES) <= set(dir(face))


@pytest.mark.parametrize("path", sorted(DOCUMENTED))
def test_documented_arguments(path: str) -> None:
    room, _, name = path.rpartition(".")
    thing: Any = getattr(module(room), name)
    known = {*inspect.signature(thing).parameters, *getattr(thing, "accepts", ())}
    assert set(DOCUMENTED[path].split()) <= known


def test_an_unknown_name_names_those_that_are_near() -> None:
    with pytest.raises(AttributeError, match="nothing for TensorFlow's 'reduce_summ'.*reduce_sum"):
        _ = tf.reduce_summ
    assert not hasattr(tf.nn, "no_such_layer")


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        tf.add(1, 2, z=3)
    with pytest.raises(TypeError, match="takes 3 positional arguments"):
        tf.add(1, 2, "a", 4)
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        tf.add(1)


def test_a_name_may_come_last() -> None:
    with tf.Graph().as_default():
        assert tf.zeros([2], tf.float32, "a").op.name == "a"
        assert tf.cast(tf.zeros([2]), tf.int32, "b").op.name == "b"
        assert tf.add(1, 2, "c").op.name == "c"


def test_import_is_quick() -> None:
    program = (
        "import sys, time; start = time.process_time(); import laminar.compat.v1; "
        "assert 'laminar.engine.graph' not in sys.modules; "
        "sys.exit(time.process_time() - start > 0.3)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0
