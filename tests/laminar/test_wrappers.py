"""Models as scikit-learn's estimators, used as scikit-learn uses them."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

from laminar.wrappers import SKLearnClassifier, SKLearnRegressor, SKLearnTransformer

CHANCE = np.random.default_rng(0)
X = CHANCE.normal(size=(120, 3)).astype("float32")
LABELS = np.array(["ant", "bee", "cow"])[np.argmax(X, axis=1)]
TARGETS = X @ [1.0, -2.0, 0.5] + 1


def classifier(x: Any, y: Any, units: int = 16) -> Any:
    laminar.set_random_seed(1)
    outputs = layers.Dense(y.shape[1], activation="softmax")
    model = laminar.Sequential([layers.Dense(units, activation="relu"), outputs])
    model.compile("adam", "categorical_crossentropy")
    return model


def regressor() -> Any:
    laminar.set_random_seed(1)
    model = laminar.Sequential([layers.Input((3,)), layers.Dense(1)])
    model.compile(laminar.optimizers.SGD(0.1), "mse")
    return model


def test_classifier_learns_and_answers_with_labels() -> None:
    estimator = SKLearnClassifier(classifier, fit_kwargs={"epochs": 60, "verbose": 0})
    assert estimator.fit(X, LABELS) is estimator
    assert estimator.classes_.tolist() == ["ant", "bee", "cow"]
    assert set(estimator.predict(X)) <= {"ant", "bee", "cow"}
    assert estimator.score(X, LABELS) > 0.9
    assert np.allclose(estimator.predict_proba(X).sum(axis=1), 1, atol=1e-5)
    best = estimator.decision_function(X).argmax(axis=1)
    assert (estimator.classes_[best] == estimator.predict(X)).all()
    assert len(estimator.history_.history["loss"]) == 60
    assert estimator.n_features_in_ == 3


def test_regressor_copies_the_model() -> None:
    model = regressor()
    before = model.get_weights()
    estimator = SKLearnRegressor(model, fit_kwargs={"epochs": 30, "verbose": 0})
    estimator.fit(X, TARGETS)
    assert estimator.predict(X).shape == (120,)
    assert estimator.score(X, TARGETS) > 0.99
    assert all((a == b).all() for a, b in zip(before, model.get_weights(), strict=True))
    estimator.fit(X, TARGETS[:, None])
    assert estimator.predict(X).shape == (120, 1)


def test_warm_start_goes_on() -> None:
    estimator = SKLearnRegressor(regressor(), warm_start=True)
    first = estimator.fit(X, TARGETS, epochs=2, verbose=0).model_
    loss = estimator.history_.history["loss"][-1]
    assert estimator.fit(X, TARGETS, epochs=2, verbose=0).model_ is first
    assert estimator.history_.history["loss"][0] < loss


def test_transformer_gives_the_outputs() -> None:
    estimator = SKLearnTransformer(regressor(), fit_kwargs={"epochs": 1, "verbose": 0})
    estimator.fit(X, TARGETS)
    assert np.allclose(estimator.transform(X), estimator.model_.predict(X, verbose=0))


def test_inside_scikit_learn() -> None:
    fit = {"epochs": 20, "verbose": 0}
    pipeline = make_pipeline(StandardScaler(), SKLearnRegressor(regressor(), fit_kwargs=fit))
    assert cross_val_score(pipeline, X, TARGETS, cv=2).min() > 0.9
    search = GridSearchCV(
        SKLearnClassifier(classifier, fit_kwargs=fit),
        {"model_kwargs": [{"units": 2}, {"units": 8}]},
        cv=2,
    )
    search.fit(X, LABELS)
    assert search.best_params_["model_kwargs"]["units"] in (2, 8)
    assert clone(pipeline) is not pipeline


def dense(x: Any, y: Any, activation: str | None = None, loss: str = "mse") -> Any:
    laminar.set_random_seed(1)
    units = y.shape[1] if y.ndim > 1 else 1
    model = laminar.Sequential([layers.Input(x.shape[1:]), layers.Dense(units, activation)])
    model.compile("sgd", loss)
    return model


FIT = {"epochs": 1, "verbose": 0}
CROSSENTROPY = {"activation": "softmax", "loss": "categorical_crossentropy"}
ESTIMATORS = [
    SKLearnClassifier(dense, model_kwargs=CROSSENTROPY, fit_kwargs=FIT),
    SKLearnRegressor(dense, fit_kwargs=FIT),
    SKLearnTransformer(dense, fit_kwargs=FIT),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize(
    ("place", "name"),
    [
        (0, "check_supervised_y_2d"),
        (0, "check_classifiers_regression_target"),
        (0, "check_supervised_y_no_nan"),
        (1, "check_supervised_y_2d"),
        (1, "check_regressors_train"),
        (2, "check_transformer_preserve_dtypes"),
        (2, "check_estimator_tags_renamed"),
    ],
)
def test_checks_of_scikit_learn(place: int, name: str) -> None:
    """What scikit-learn asks of estimators, by the tags with which each describes itself."""
    estimator = ESTIMATORS[place]
    getattr(estimator_checks, name)(type(estimator).__name__, estimator)


def test_labels_in_a_column_are_taken_with_a_warning() -> None:
    estimator = SKLearnClassifier(classifier, fit_kwargs=FIT)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        estimator.fit(X, LABELS[:, None])
    assert estimator.predict(X).shape == (120,)


def test_refused() -> None:
    with pytest.raises(NotFittedError):
        SKLearnRegressor(regressor()).predict(X)
    uncompiled = laminar.Sequential([layers.Input((3,)), layers.Dense(1)])
    with pytest.raises(FailedPreconditionError, match="model is not compiled"):
        SKLearnRegressor(uncompiled).fit(X, TARGETS)
    with pytest.raises(InvalidArgumentError, match="one class only"):
        SKLearnClassifier(classifier).fit(X, np.zeros(120))
    with pytest.raises(InvalidArgumentError, match="one label for each sample"):
        SKLearnClassifier(classifier).fit(X, np.eye(3)[np.argmax(X, axis=1)])
    with pytest.raises(InvalidArgumentError, match="targets that are continuous"):
        SKLearnClassifier(classifier).fit(X, TARGETS)
    with pytest.raises(InvalidArgumentError, match="got 3"):
        SKLearnRegressor(cast("Any", 3)).fit(X, TARGETS)
    with pytest.raises(InvalidArgumentError, match="returned None"):
        SKLearnRegressor(cast("Any", lambda x, y: None)).fit(X, TARGETS)
