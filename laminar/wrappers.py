"""Models as scikit-learn's estimators: in its pipelines, grid searches and cross-validation.

This module owns scikit-learn; it is loaded when the module is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self, TypeAlias

import numpy as np

from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)
from laminar.models import Model, clone_model

try:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        RegressorMixin,
        TransformerMixin,
    )
    from sklearn.utils.multiclass import type_of_target
    from sklearn.utils.validation import (
        check_is_fitted,
        column_or_1d,
        validate_data,
    )
except ImportError as error:
    raise UnimplementedError(
        "laminar.wrappers needs scikit-learn 1.6 or newer, which is not installed",
        remedy="pip install 'scikit-learn>=1.6'",
    ) from error

__all__ = ["SKLearnClassifier", "SKLearnRegressor", "SKLearnTransformer"]

Maker: TypeAlias = "Model | Callable[..., Model]"


class _Estimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """A model behind `fit(X, y)`, with the parameters that scikit-learn sets and clones.

    Args:
        model: a compiled model, of which each `fit` trains a copy with new weights; or a function
            `model(X, y, **model_kwargs)` that makes a compiled one.
        warm_start: whether `fit` goes on with the model it trained before.
        model_kwargs: passed to `model`, if it is a function.
        fit_kwargs: passed to the model's `fit`.
    """

    def __init__(
        self,
        model: Maker,
        warm_start: bool = False,
        model_kwargs: Mapping[str, Any] | None = None,
        fit_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.warm_start = warm_start
        self.model_kwargs = model_kwargs
        self.fit_kwargs = fit_kwargs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # unless the user seeds the draws of weights and batches
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, **kwargs: Any) -> Self:  # noqa: N803  # scikit-learn's name
        """Train the model on samples `X` and targets `y`.

        `model_` is the trained model and `history_` what its `fit` gave.

        Args:
            X: [samples, features].
            y: [samples], or [samples, outputs] for a regressor.
            **kwargs: passed to the model's `fit`, beside `fit_kwargs`.

        Raises:
            InvalidArgumentError: `model` is, or gives, no compiled model.
        """
        inputs, targets = validate_data(self, X, y, multi_output=True, allow_nd=True)
        targets = self._encoded(targets)
        fitted = getattr(self, "model_", None) if self.warm_start else None
        model = self._made(inputs, targets) if fitted is None else fitted
        self.history_ = model.fit(inputs, targets, **{**(self.fit_kwargs or {}), **kwargs})
        self.model_ = model
        return self

    def predict(self, X: Any) -> Any:  # noqa: N803  scikit-learn's name
        """The model's answer for each sample, in the form of the targets.

        Raises:
            sklearn.exceptions.NotFittedError: `fit` has not been called.
        """
        return self._decoded(self._outputs(X))

    def _outputs(self, X: Any) -> Any:  # noqa: N803  scikit-learn's name
        check_is_fitted(self, "model_")
        inputs = validate_data(self, X, reset=False, allow_nd=True)
        return self.model_.predict(inputs, verbose=0)

    def _made(self, inputs: Any, targets: Any) -> Model:
        who = type(self).__name__
        if isinstance(self.model, Model):
            _check_compiled(self.model, f"{who}: model")
            made = clone_model(self.model)
            made.compile_from_config(self.model.get_compile_config() or {})
            return made
        if not callable(self.model):
            raise InvalidArgumentError(
                f"{who}: model must be a compiled model or a function that makes one, "
                f"got {self.model!r}"
            )
        made = self.model(inputs, targets, **(self.model_kwargs or {}))
        if not isinstance(made, Model):
            raise InvalidArgumentError(
                f"{who}: the function given as model returned {made!r}",
                remedy="return a compiled model from it",
            )
        _check_compiled(made, f"{who}: the model that the function made")
        return made

    def _encoded(self, y: Any) -> Any:
        """What the model is trained to give, for targets."""
        return y

    def _decoded(self, outputs: Any) -> Any:
        """The targets that outputs of the model stand for."""
        return outputs


def _check_compiled(model: Model, who: str) -> None:
    if not model.compiled:
        raise FailedPreconditionError(
            f"{who} is not compiled", remedy="call model.compile(optimizer, loss) first"
        )


class SKLearnClassifier(ClassifierMixin, _Estimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier of scikit-learn whose model gives a number for each class.

    The model is trained on one-hot targets: end it with `Dense(classes, activation="softmax")` and
    compile it with `categorical_crossentropy`. `classes_` are the labels, in the order of the
    model's outputs. Arguments as of the other wrappers: `model`, `warm_start`, `model_kwargs`,
    `fit_kwargs`.

    Examples:
        >>> def network(X, y):
        ...     model = laminar.Sequential([layers.Input(X.shape[1:]), layers.Dense(2, "softmax")])
        ...     model.compile("sgd", "categorical_crossentropy")
        ...     return model
        >>> classifier = laminar.wrappers.SKLearnClassifier(network, fit_kwargs={"verbose": 0})
        >>> classifier.fit(np.eye(4), np.array(["a", "b", "a", "b"])).predict(np.eye(4)).shape
        (4,)
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # which depends on the epochs
        tags.target_tags.multi_output = False
        return tags

    def _encoded(self, y: Any) -> Any:
        y = np.asarray(y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if y.ndim != 1:
            raise InvalidArgumentError(
                f"SKLearnClassifier: expected one label for each sample, got targets of the shape "
                f"{y.shape}",
                remedy="give labels instead of one-hot rows",
            )
        kind = type_of_target(y, raise_unknown=True)
        if kind not in ("binary", "multiclass"):
            raise InvalidArgumentError(
                f"SKLearnClassifier: expected labels, got targets that are {kind}",
                remedy="use SKLearnRegressor for numbers with fractions",
            )
        labels, places = np.unique(y, return_inverse=True)
        if len(labels) < 2:
            raise InvalidArgumentError(
                f"SKLearnClassifier: the targets have one class only, {labels.tolist()}"
            )
        self.classes_ = labels
        return np.eye(len(labels), dtype="float32")[places]

    def _decoded(self, outputs: Any) -> Any:
        return self.classes_[np.argmax(outputs, axis=-1)]

    def decision_function(self, X: Any) -> Any:  # noqa: N803  scikit-learn's name
        """The model's outputs: [samples, classes]."""
        return self._outputs(X)

    def predict_proba(self, X: Any) -> Any:  # noqa: N803  scikit-learn's name
        """The model's outputs, which are probabilities if it ends with a softmax."""
        return self._outputs(X)


class SKLearnRegressor(RegressorMixin, _Estimator):  # type: ignore[misc]  # scikit-learn has no types
    """A regressor of scikit-learn: the model gives a number for each target of a sample.

    Arguments as of the other wrappers: `model`, `warm_start`, `model_kwargs`, `fit_kwargs`.

    Examples:
        >>> def network(X, y):
        ...     model = laminar.Sequential([layers.Input(X.shape[1:]), layers.Dense(1)])
        ...     model.compile("sgd", "mse")
        ...     return model
        >>> regressor = laminar.wrappers.SKLearnRegressor(network, fit_kwargs={"verbose": 0})
        >>> regressor.fit(np.eye(4), np.ones(4)).predict(np.eye(4)).shape
        (4,)
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # which depends on the epochs
        return tags

    def _encoded(self, y: Any) -> Any:
        y = np.asarray(y)
        self._is_flat = y.ndim == 1
        return y[:, None] if self._is_flat else y

    def _decoded(self, outputs: Any) -> Any:
        return outputs[:, 0] if self._is_flat and np.ndim(outputs) == 2 else outputs


class SKLearnTransformer(TransformerMixin, _Estimator):  # type: ignore[misc]  # scikit-learn has no types
    """A transformer of scikit-learn: its output for a sample is the model's.

    Arguments as of the other wrappers: `model`, `warm_start`, `model_kwargs`, `fit_kwargs`.

    Examples:
        >>> def network(X, y):
        ...     model = laminar.Sequential([layers.Input(X.shape[1:]), layers.Dense(2)])
        ...     model.compile("sgd", "mse")
        ...     return model
        >>> transformer = laminar.wrappers.SKLearnTransformer(network, fit_kwargs={"verbose": 0})
        >>> transformer.fit(np.eye(4), np.ones((4, 2))).transform(np.eye(4)).shape
        (4, 2)
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # the outputs are of the model's type
        return tags

    def transform(self, X: Any) -> Any:  # noqa: N803  scikit-learn's name
        """The model's outputs."""
        return self._outputs(X)
