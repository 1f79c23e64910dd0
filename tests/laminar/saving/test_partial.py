"""Loading what fits: weights of other models, and models with unknown parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, losses
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from laminar.saving import load_model


class Twice(layers.Layer):
    """Unknown to the files' readers."""

    def call(self, x: Any) -> Any:
        return x * 2


class Scale(layers.Layer):
    def build(self, input_shape: Any) -> None:
        self.scale = self.add_weight((input_shape[-1],), "ones", name="scale")

    def call(self, x: Any) -> Any:
        return x * self.scale


class Distance(losses.Loss):
    def call(self, y_true: Any, y_pred: Any) -> Any:
        return laminar.ops.mean(laminar.ops.abs(y_true - y_pred), axis=-1)


def stack(*inner: Any) -> Any:
    return laminar.Sequential([layers.Input((3,)), *inner])


def test_weights_by_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = stack(layers.Dense(4), layers.BatchNormalization(), layers.Dense(2))
    source.save_weights(tmp_path / "m.weights.h5")
    model = stack(layers.Dense(4), layers.Dense(5), layers.PReLU())
    kept = model.get_weights()
    report = model.load_weights(tmp_path / "m.weights.h5", partial=True)
    assert report.loaded == ["layers/dense"]
    assert report.left_out.keys() == {
        "layers/dense_1",
        "layers/p_re_lu",
        "layers/batch_normalization",
    }
    assert "does not fit" in report.left_out["layers/dense_1"]
    assert report.left_out["layers/p_re_lu"] == "not in the file"
    assert report.left_out["layers/batch_normalization"] == "not in the model"
    assert not report.is_complete
    text = capsys.readouterr().out
    assert text == f"{report}\n"
    assert [line.split()[0] for line in text.splitlines()[1:]] == list(report.left_out)
    np.testing.assert_array_equal(model.get_weights()[0], source.get_weights()[0])
    np.testing.assert_array_equal(model.get_weights()[2], kept[2])


def test_names_decide_where_paths_have_moved(tmp_path: Path) -> None:
    """A layer put in front moves the paths of those of its class."""
    source = stack(layers.Dense(3, name="one"), layers.Dense(3, name="two"))
    source.save_weights(tmp_path / "m.weights.h5")
    names = ("new", "one", "two")
    model = stack(*(layers.Dense(3, name=name) for name in names))
    report = model.load_weights(tmp_path / "m.weights.h5", partial=True)
    assert report.left_out == {"layers/dense": "not in the file"}
    for mine, theirs in zip(model.get_weights()[2:], source.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_file_that_fits(tmp_path: Path) -> None:
    model = stack(layers.Dense(4))
    for name in ("m.weights.h5", "m.keras", "m.h5"):
        if name.endswith(".weights.h5"):
            model.save_weights(tmp_path / name)
        else:
            model.save(tmp_path / name)
        report = model.load_weights(tmp_path / name, partial=True)
        assert report.is_complete
        assert len(report.loaded) == 1


def saved_with_unknown_parts(path: Path) -> Any:
    image = layers.Input((3,), name="image")
    x = layers.Dense(4, name="first")(image)
    x = Scale(name="scale")(x)
    x = Twice(name="twice")(x)
    model = laminar.Model(image, layers.Dense(2, name="last")(x))
    model.compile("adam", Distance())
    model.save(path)
    return model


@pytest.mark.parametrize("name", ["m.keras", "m.h5"])
def test_a_model_with_unknown_layers(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = saved_with_unknown_parts(tmp_path / name)
    model = load_model(tmp_path / name, partial=True)
    report = model.load_report
    assert {"scale", "twice", "compile()"} <= report.left_out.keys()
    assert "Scale" in report.left_out["scale"]
    assert "left out" in capsys.readouterr().out
    for layer in ("first", "last"):
        for mine, theirs in zip(
            model.get_layer(layer).get_weights(), source.get_layer(layer).get_weights(), strict=True
        ):
            np.testing.assert_array_equal(mine, theirs)
    x = np.ones((2, 3), "float32")
    head = laminar.Model(model.input, model.get_layer("first").output)
    np.testing.assert_allclose(
        np.asarray(head(x)), x @ source.get_weights()[0] + source.get_weights()[1], rtol=1e-6
    )
    with pytest.raises(FailedPreconditionError, match="'scale' of class 'Scale' was not made"):
        model(x)
    with pytest.raises(InvalidArgumentError, match="cannot be saved"):
        model.save(tmp_path / "again.keras")


def test_the_same_with_the_classes_is_whole(tmp_path: Path) -> None:
    source = saved_with_unknown_parts(tmp_path / "m.keras")
    known = {"Scale": Scale, "Twice": Twice, "Distance": Distance}
    model = load_model(tmp_path / "m.keras", custom_objects=known, partial=True)
    assert model.load_report.is_complete
    x = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(np.asarray(model(x)), np.asarray(source(x)))


def test_all_unknown_names_stand_in_one_line(tmp_path: Path) -> None:
    saved_with_unknown_parts(tmp_path / "m.keras")
    with pytest.raises(NotFoundError) as caught:
        load_model(tmp_path / "m.keras", custom_objects={"Distance": Distance})
    text = str(caught.value)
    path = str(tmp_path / "m.keras")
    given = "{'Distance': Distance, 'Scale': Scale, 'Twice': Twice}"
    assert f"load_model({path!r}, custom_objects={given})" in text
    assert f"{path} (written by laminar {laminar.__version__} on 20" in text
    with pytest.raises(NotFoundError, match="names 'Distance'.*") as caught:
        load_model(tmp_path / "m.keras", custom_objects={"Scale": Scale, "Twice": Twice})
    assert "compile=False" in str(caught.value)


def test_near_names(tmp_path: Path) -> None:
    class Densee(layers.Dense):
        pass

    stack(Densee(2)).save(tmp_path / "m.keras")
    with pytest.raises(NotFoundError) as caught:
        load_model(tmp_path / "m.keras")
    assert "Densee may be Dense" in str(caught.value)


def test_a_stack_with_an_unknown_layer(tmp_path: Path) -> None:
    source = stack(layers.Dense(4), Twice(), layers.Dense(2))
    source.save(tmp_path / "m.keras")
    model = load_model(tmp_path / "m.keras", partial=True)
    assert [tuple(w.shape) for w in model.get_weights()] == [(3, 4), (4,), (4, 2), (2,)]
    np.testing.assert_array_equal(model.get_weights()[2], source.get_weights()[2])


@pytest.mark.parametrize("ending", [".weights.h5", ".ckpt"])
def test_layers_that_are_skipped_keep_their_weights(tmp_path: Path, ending: str) -> None:
    def made() -> Any:
        return laminar.Sequential([layers.Input((3,)), layers.Dense(4), layers.Dense(4)])

    model, path = made(), tmp_path / f"m{ending}"
    before = made()
    for written in ([], [model.layers[0]]):  # whether the file has them or not
        model.save_weights(path, objects_to_skip=written)
        again = made()
        again.set_weights(before.get_weights())
        again.load_weights(path, objects_to_skip=[again.layers[0]])
        for found, kept in zip(again.layers[0].get_weights(), before.get_weights(), strict=False):
            np.testing.assert_array_equal(found, kept)
        for found, read in zip(
            again.layers[1].get_weights(), model.layers[1].get_weights(), strict=True
        ):
            np.testing.assert_array_equal(found, read)
    with pytest.raises(InvalidArgumentError):  # what is not skipped must be there
        made().load_weights(path)


def test_nothing_is_skipped_of_older_files(tmp_path: Path) -> None:
    model = laminar.Sequential([layers.Input((3,)), layers.Dense(4)])
    model.save(tmp_path / "m.h5")
    with pytest.raises(InvalidArgumentError, match="older format"):
        model.load_weights(tmp_path / "m.h5", objects_to_skip=[model.layers[0]])
