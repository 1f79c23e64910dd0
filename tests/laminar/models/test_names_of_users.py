"""Attributes and methods that programs give their own models, layers, ... do not meet laminar's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops

# What people call things; those that Keras itself has on its classes are left out.
NAMES = re.findall(
    r"\w+",
    """
    network inputs outputs who compiled output_names input_names sublayers flatten_layers groups
    encoder decoder backbone head stem trunk body core generator discriminator critic actor teacher
    student embedding embeddings blocks stages stack units_list hidden state states cell cells gate
    gates query key value heads attention mask masks positions tokenizer vocab vocabulary scale
    scales shift bias_term kernel_sizes num_layers num_heads num_classes latent_dim input_dim
    output_dim hidden_dim depth width height channels features feature_extractor classifier
    regressor predictor policy reward buffer memory cache counter step steps epoch batch batch_size
    options params hyperparams hparams settings arguments args config_dict data dataset loader
    source target labels classes targets predictions logits probabilities scores results outcome
    outputs_list trainer listeners callbacks_list reports summary_text time update_steps rate
    schedule momentum_value noise temperature epsilon alpha beta gamma theta sigma weights_list
    parent owner children child node nodes edges graph session tape gradients grads tensors
    variables_list seed rng generator_state info meta metadata tags version description title
    author tracker trackers loss_tracker loss_value loss_history best_loss threshold alphas
    _network _step _find _own _prepare _reports _holders _listeners _untracked _share_work _stack
    _symbols _append _connect _compiled _policy _predict_step _first_shape _build_shapes _results
    _evaluate _dry_run _names_of _values_of _state_groups _new_step _known_outputs _summarized
    _require_compiled _init_arguments _call_parameters _has_reported _to_tensor _casts _is_inside
    _masks_of _set_masks _with_training _after_call _own_variables _own_seeds _own_metrics
    _saved_variables _forget_steps _traced_steps _metric_keys _tracked_loss _trace_outputs
    _training_default _first_node _makes_masks _shapes_for_build _checked_build _call_symbolic
    _listed_layers _network_outputs _begin_with _connect_or_drop _input_is_given _losses _trainable
    _encoder _decoder _head _model _layer _inputs _outputs _data _config _options _state _states
    _cache _buffer _history _loss _weights _params _mask _scale _noise _embed _hidden _norm _drop
    _proj _attn _forward _backward _run _setup _init _make _create _update _apply _clip _track
    _average _factor _checked _scalar _groups _indices _averages _accumulate _overwrite _who _dtype_
""",
)

X = np.linspace(-1, 1, 24, dtype="float32").reshape(12, 2)
Y = X.sum(axis=1, keepdims=True)


class Plain(layers.Layer):
    """One weight; `add_metric`, `add_loss` and a mask, so that much of what a layer has is used."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.inner = [layers.Dense(3), layers.Dropout(0.1, seed=1)]
        self.supports_masking = True
        take_names(self)

    def call(self, inputs: Any, training: bool = False) -> Any:
        x = self.inner[1](self.inner[0](inputs), training=training)
        self.add_loss(1e-3 * ops.sum(x**2))
        self.add_metric(ops.mean(x), name="reported")
        return x


class Regression(laminar.Model):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.first = Plain()
        self.last = layers.Dense(1)
        take_names(self)

    def call(self, inputs: Any, training: bool = False) -> Any:
        return self.last(self.first(inputs, training=training))


class Functional(laminar.Model):
    def __init__(self, **kwargs: Any) -> None:
        x = layers.Input((2,))
        super().__init__(inputs=x, outputs=layers.Dense(1)(Plain()(x)), **kwargs)
        take_names(self)

    def get_config(self) -> dict[str, Any]:
        return {}


class Stack(laminar.Sequential):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__([Plain(), layers.Dense(1)], name="stack")
        take_names(self)

    @classmethod
    def from_config(cls, config: Any, custom_objects: Any = None) -> Any:
        return cls()


class Error(laminar.metrics.Metric):
    def __init__(self, name: str = "error", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.total = self.add_variable((), "zeros")
        take_names(self)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.total.assign_add(ops.sum(ops.absolute(y_true - y_pred)))

    def result(self) -> Any:
        return self.total.value


class Squares(laminar.losses.Loss):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(name="squares")
        take_names(self)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return ops.mean((y_true - y_pred) ** 2, axis=-1)


class Descent(laminar.optimizers.SGD):
    def __init__(self, learning_rate: float = 0.05, **kwargs: Any) -> None:
        super().__init__(learning_rate, momentum=0.5, clipnorm=1.0, weight_decay=1e-3, use_ema=True)
        take_names(self)


class Watch(laminar.callbacks.Callback):
    def __init__(self) -> None:
        super().__init__()
        take_names(self)


def take_names(obj: Any) -> None:
    """Give the instance an attribute of each name."""
    if taking[0] == "attributes":
        for name in NAMES:
            setattr(obj, name, name)


def not_mine(self: Any, *args: Any, **kwargs: Any) -> Any:
    raise AssertionError("laminar has called a method of the user's")


taking = ["attributes"]


@pytest.mark.parametrize("how", ["attributes", "methods"])
@pytest.mark.parametrize("kind", [Regression, Functional, Stack])
def test_names(kind: Any, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(NAMES) > 200
    taking[0] = how
    laminar.utils.set_random_seed(1)
    used = (kind, Plain, Error, Squares, Descent, Watch)
    if how == "methods":
        for target in used:
            for name in NAMES:
                monkeypatch.setattr(target, name, not_mine, raising=False)
    model = kind()
    model.compile(Descent(), loss=Squares(), metrics=[Error()], weighted_metrics=["mae"])
    history = model.fit(
        X, Y, epochs=8, batch_size=5, validation_split=0.2, callbacks=[Watch()], verbose=0
    ).history
    assert history["loss"][-1] < history["loss"][0]
    assert "reported" in history
    found = model.evaluate(X, Y, verbose=0, return_dict=True)
    model.summary(print_fn=lambda text: None)
    if how == "attributes":
        for name in NAMES:
            assert getattr(model, name) == getattr(model.layers[0], name, name) == name
    with laminar.saving.custom_object_scope({k.__name__: k for k in used}):
        model.save(tmp_path / "model.keras")
        again = laminar.saving.load_model(tmp_path / "model.keras")
    assert type(again) is kind
    again_found = again.evaluate(X, Y, verbose=0, return_dict=True)
    np.testing.assert_allclose(again_found["mae"], found["mae"], rtol=1e-6)
    np.testing.assert_array_equal(model.predict(X, verbose=0), again.predict(X, verbose=0))
