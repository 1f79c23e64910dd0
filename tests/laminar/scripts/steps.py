"""What goes on in a step, changed: losses, metrics and train steps of one's own, bare loops.

Keras writes train steps in the manner of each backend; those with `GradientTape` are laminar's own
and are compared with `fit`.
"""

# mypy: disable-error-code="misc,name-defined"
# (classes derived from those of `keras`, which is any module here)

from __future__ import annotations

from typing import Any

import numpy as np

from .tools import data, fill, labels

X, Y = data("steps x", 64, 5), data("steps y", 64, 1)


def own_compute_loss(keras: Any) -> Any:
    class Model(keras.Model):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.loss_tracker = keras.metrics.Mean(name="own_loss")

        def compute_loss(
            self, x: Any, y: Any, y_pred: Any, sample_weight: Any, training: bool = True
        ) -> Any:
            loss = keras.ops.mean(keras.ops.square(y_pred - y))
            loss = loss + 0.1 * sum(self.losses)
            self.loss_tracker.update_state(loss)
            return loss

        @property
        def metrics(self) -> list[Any]:
            return [self.loss_tracker]

    inputs = keras.Input((5,), name="x")
    outputs = keras.layers.Dense(1, kernel_regularizer="l2")(inputs)
    model = fill(Model(inputs, outputs))
    model.compile(keras.optimizers.SGD(0.05))
    history = model.fit(X, Y, epochs=2, batch_size=16, shuffle=False, verbose=0)
    return {
        "losses": history.history["own_loss"],
        "weights": model.get_weights(),
        "tracked": model.loss_tracker.result(),
    }


def old_compute_loss(keras: Any) -> Any:
    """Before Keras 3.3 compute_loss had no `training`."""

    class Model(keras.Model):
        def compute_loss(
            self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None
        ) -> Any:
            return keras.ops.mean(keras.ops.abs(y_pred - y)) + 2.0

    inputs = keras.Input((5,))
    model = fill(Model(inputs, keras.layers.Dense(1)(inputs)))
    model.compile("sgd", metrics=["mse"])
    history = model.fit(X, Y, epochs=2, shuffle=False, verbose=0)
    return {"history": history.history, "evaluated": model.evaluate(X, Y, verbose=0)}


def own_compute_metrics(keras: Any) -> Any:
    class Model(keras.Model):
        def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            results = super().compute_metrics(x, y, y_pred, sample_weight)
            return {**results, "bias": keras.ops.mean(y_pred - y)}

    inputs = keras.Input((5,))
    model = fill(Model(inputs, keras.layers.Dense(1)(inputs)))
    model.compile("sgd", "mse", metrics=["mae"])
    history = model.fit(X, Y, batch_size=64, epochs=2, shuffle=False, verbose=0)
    return {"history": history.history}


def stateless_loop(keras: Any) -> Any:
    """Values of variables in, values out."""
    model = keras.Sequential(
        [keras.Input((5,)), keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)]
    )
    fill(model)
    optimizer = keras.optimizers.Adam(0.1)
    optimizer.build(model.trainable_variables)
    metric = keras.metrics.MeanSquaredError()
    trainable = [v.value for v in model.trainable_variables]
    non_trainable = [v.value for v in model.non_trainable_variables]
    slots = [v.value for v in optimizer.variables]
    seen = [v.value for v in metric.variables]
    predicted, non_trainable = model.stateless_call(trainable, non_trainable, X)
    seen = metric.stateless_update_state(seen, Y, predicted)
    grads = [keras.ops.ones_like(v) * (i + 1) for i, v in enumerate(trainable)]
    trainable, slots = optimizer.stateless_apply(slots, grads, trainable)
    return {
        "predicted": predicted,
        "metric": metric.stateless_result(seen),
        "trainable": trainable,
        "slots": slots,
        "unchanged": model.get_weights(),
    }


def gradients_by_hand(keras: Any) -> Any:
    """An optimizer given gradients, without a tape."""
    v = keras.Variable(np.array([1.0, -2.0, 3.0], "float32"), name="v")
    values: list[Any] = []
    for optimizer in (
        keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
        keras.optimizers.AdamW(0.1, weight_decay=0.01),
        keras.optimizers.RMSprop(0.1, centered=True),
    ):
        v.assign([1.0, -2.0, 3.0])
        for _ in range(3):
            optimizer.apply_gradients([(2 * v.value, v)])
        values.append(np.array(v.value))
        values.append(int(optimizer.iterations))
    return values


SCRIPTS = [
    own_compute_loss,
    old_compute_loss,
    own_compute_metrics,
    stateless_loop,
    gradients_by_hand,
]


# With GradientTape


def train_step_of_a_class(keras: Any) -> Any:
    class Model(keras.Model):
        def train_step(self, data: Any) -> Any:
            x, y = data
            with keras.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=y_pred)
            variables = self.trainable_variables
            gradients = tape.gradient(loss, variables)
            self.optimizer.apply(gradients, variables)
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, y_pred)
            return {m.name: m.result() for m in self.metrics}

    histories = []
    for kind in (Model, keras.Model):
        inputs = keras.Input(shape=(5,))
        model = fill(kind(inputs, keras.layers.Dense(1)(inputs)))
        model.compile(optimizer="adam", loss="mse", metrics=["mae"])
        histories.append(model.fit(X, Y, epochs=3, batch_size=16, shuffle=False, verbose=0).history)
    own, usual = histories
    assert list(own) == ["loss", "mae"]
    np.testing.assert_allclose(own["mae"], usual["mae"], rtol=1e-5)
    # The loss that the step reports is the mean of the batches, not of the examples.
    np.testing.assert_allclose(own["loss"], usual["loss"], rtol=1e-5)
    return histories


def lower_level(keras: Any) -> Any:
    """No loss and metrics in compile(); trackers of the model's own."""

    class Model(keras.Model):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.loss_tracker = keras.metrics.Mean(name="loss")
            self.mae_metric = keras.metrics.MeanAbsoluteError(name="mae")
            self.loss_fn = keras.losses.MeanSquaredError()

        def train_step(self, data: Any) -> Any:
            x, y, *weight = data
            with keras.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.loss_fn(y, y_pred, sample_weight=weight[0] if weight else None)
            gradients = tape.gradient(loss, self.trainable_weights)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_weights, strict=True))
            self.loss_tracker.update_state(loss)
            self.mae_metric.update_state(y, y_pred)
            return {"loss": self.loss_tracker.result(), "mae": self.mae_metric.result()}

        def test_step(self, data: Any) -> Any:
            x, y = data
            y_pred = self(x, training=False)
            self.mae_metric.update_state(y, y_pred)
            return {"mae": self.mae_metric.result()}

        @property
        def metrics(self) -> list[Any]:
            return [self.loss_tracker, self.mae_metric]

    inputs = keras.Input(shape=(5,))
    model = fill(Model(inputs, keras.layers.Dense(1)(inputs)))
    model.compile(optimizer=keras.optimizers.SGD(0.1))
    history = model.fit(
        X, Y, epochs=5, sample_weight=np.ones(64), validation_data=(X, Y), verbose=0
    ).history
    assert history["loss"][-1] < history["loss"][0]
    mae = float(np.abs(model.predict(X, verbose=0) - Y).mean())
    np.testing.assert_allclose(model.evaluate(X, Y, verbose=0), mae, rtol=1e-5)
    np.testing.assert_allclose(history["val_mae"][-1], mae, rtol=1e-5)
    return history


def adversarial(keras: Any) -> Any:
    """Two networks, two optimizers, one compile() with arguments of its own."""
    layers, ops = keras.layers, keras.ops

    class GAN(keras.Model):
        def __init__(self, discriminator: Any, generator: Any, latent_dim: int) -> None:
            super().__init__()
            self.discriminator = discriminator
            self.generator = generator
            self.latent_dim = latent_dim
            self.d_loss_tracker = keras.metrics.Mean(name="d_loss")
            self.g_loss_tracker = keras.metrics.Mean(name="g_loss")
            self.seed_generator = keras.random.SeedGenerator(1337)

        @property
        def metrics(self) -> list[Any]:
            return [self.d_loss_tracker, self.g_loss_tracker]

        def compile(self, d_optimizer: Any, g_optimizer: Any, loss_fn: Any) -> None:
            super().compile()
            self.d_optimizer = d_optimizer
            self.g_optimizer = g_optimizer
            self.loss_fn = loss_fn

        def train_step(self, real: Any) -> Any:
            if isinstance(real, tuple):
                real = real[0]
            batch_size = ops.shape(real)[0]
            noise = keras.random.normal((batch_size, self.latent_dim), seed=self.seed_generator)
            fake = self.generator(noise)
            both = ops.concatenate([fake, real], axis=0)
            is_fake = ops.concatenate(
                [ops.ones((batch_size, 1)), ops.zeros((batch_size, 1))], axis=0
            )
            is_fake = is_fake + 0.05 * keras.random.uniform(
                ops.shape(is_fake), seed=self.seed_generator
            )
            with keras.GradientTape() as tape:
                predictions = self.discriminator(both)
                d_loss = self.loss_fn(is_fake, predictions)
            grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
            self.d_optimizer.apply(grads, self.discriminator.trainable_weights)

            noise = keras.random.normal((batch_size, self.latent_dim), seed=self.seed_generator)
            misleading = ops.zeros((batch_size, 1))
            with keras.GradientTape() as tape:
                predictions = self.discriminator(self.generator(noise))
                g_loss = self.loss_fn(misleading, predictions)
            grads = tape.gradient(g_loss, self.generator.trainable_weights)
            self.g_optimizer.apply(grads, self.generator.trainable_weights)
            self.d_loss_tracker.update_state(d_loss)
            self.g_loss_tracker.update_state(g_loss)
            return {m.name: m.result() for m in self.metrics}

    def make(*units: int, activation: Any) -> Any:
        return [layers.Dense(n, activation=activation) for n in units]

    discriminator = keras.Sequential(
        [keras.Input((5,)), *make(8, activation=layers.LeakyReLU(0.2)), layers.Dense(1)]
    )
    generator = keras.Sequential(
        [keras.Input((3,)), *make(8, activation="relu"), layers.Dense(5)], name="generator"
    )
    gan = GAN(discriminator, generator, 3)
    gan.compile(
        d_optimizer=keras.optimizers.Adam(0.0003),
        g_optimizer=keras.optimizers.Adam(0.0003),
        loss_fn=keras.losses.BinaryCrossentropy(from_logits=True),
    )
    before = [w.copy() for w in gan.get_weights()]
    history = gan.fit(X, batch_size=20, epochs=2, verbose=0).history
    assert list(history) == ["d_loss", "g_loss"]
    assert all(np.isfinite(v).all() for v in history.values())
    assert all((a != b).any() for a, b in zip(before, gan.get_weights(), strict=True) if a.ndim > 1)
    return history


def vae_train_step(keras: Any) -> Any:
    ops, layers = keras.ops, keras.layers

    class Sampling(layers.Layer):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.seed_generator = keras.random.SeedGenerator(1)

        def call(self, inputs: Any) -> Any:
            mean, log_var = inputs
            batch, size = ops.shape(mean)[0], ops.shape(mean)[1]
            noise = keras.random.normal(shape=(batch, size), seed=self.seed_generator)
            return mean + ops.exp(0.5 * log_var) * noise

    x = inputs = keras.Input((8, 8, 1))
    x = layers.Conv2D(4, 3, activation="relu", strides=2, padding="same")(x)
    x = layers.Dense(6, activation="relu")(layers.Flatten()(x))
    mean, log_var = layers.Dense(2, name="z_mean")(x), layers.Dense(2, name="z_log_var")(x)
    encoder = keras.Model(inputs, [mean, log_var, Sampling()([mean, log_var])], name="encoder")
    latent = keras.Input((2,))
    x = layers.Dense(4 * 4 * 4, activation="relu")(latent)
    x = layers.Reshape((4, 4, 4))(x)
    x = layers.Conv2DTranspose(1, 3, activation="sigmoid", strides=2, padding="same")(x)
    decoder = keras.Model(latent, x, name="decoder")

    class VAE(keras.Model):
        def __init__(self, encoder: Any, decoder: Any, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.encoder, self.decoder = encoder, decoder
            self.total_loss_tracker = keras.metrics.Mean(name="total_loss")
            self.kl_loss_tracker = keras.metrics.Mean(name="kl_loss")

        @property
        def metrics(self) -> list[Any]:
            return [self.total_loss_tracker, self.kl_loss_tracker]

        def train_step(self, data: Any) -> Any:
            with keras.GradientTape() as tape:
                mean, log_var, z = self.encoder(data)
                reconstruction = self.decoder(z)
                reconstruction_loss = ops.mean(
                    ops.sum(keras.losses.binary_crossentropy(data, reconstruction), axis=(1, 2))
                )
                kl_loss = -0.5 * (1 + log_var - ops.square(mean) - ops.exp(log_var))
                kl_loss = ops.mean(ops.sum(kl_loss, axis=1))
                total_loss = reconstruction_loss + kl_loss
            grads = tape.gradient(total_loss, self.trainable_weights)
            self.optimizer.apply_gradients(zip(grads, self.trainable_weights, strict=True))
            self.total_loss_tracker.update_state(total_loss)
            self.kl_loss_tracker.update_state(kl_loss)
            return {
                "loss": self.total_loss_tracker.result(),
                "kl_loss": self.kl_loss_tracker.result(),
            }

    images = (labels("images", 48 * 64, 2).reshape(48, 8, 8, 1)).astype("float32")
    vae = VAE(encoder, decoder)
    vae.compile(optimizer=keras.optimizers.Adam(0.01))
    history = vae.fit(images, epochs=6, batch_size=16, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    assert encoder.predict(images[:5], verbose=0)[2].shape == (5, 2)
    assert decoder.predict(np.zeros((1, 2)), verbose=0).shape == (1, 8, 8, 1)
    return history


def bare_loop(keras: Any) -> Any:
    """Epochs, batches, a traced step, metrics, validation, all by hand."""
    inputs = keras.Input(shape=(5,), name="rows")
    x = keras.layers.Dense(8, activation="relu", activity_regularizer="l2")(inputs)
    model = keras.Model(inputs, keras.layers.Dense(3, name="predictions")(x))
    fill(model)
    optimizer = keras.optimizers.SGD(learning_rate=0.1)
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    train_metric = keras.metrics.SparseCategoricalAccuracy()
    val_metric = keras.metrics.SparseCategoricalAccuracy()
    y = labels("classes", 64, 3)

    @keras.function  # type: ignore[untyped-decorator]  # Any
    def train_step(x: Any, y: Any) -> Any:
        with keras.GradientTape() as tape:
            logits = model(x, training=True)
            value = loss_fn(y, logits)
            value = value + sum(model.losses)
        grads = tape.gradient(value, model.trainable_weights)
        optimizer.apply_gradients(zip(grads, model.trainable_weights, strict=True))
        train_metric.update_state(y, logits)
        return value

    @keras.function  # type: ignore[untyped-decorator]  # Any
    def test_step(x: Any, y: Any) -> None:
        val_metric.update_state(y, model(x, training=False))

    told = []
    for _epoch in range(3):
        for i in range(0, 48, 16):
            loss_value = train_step(X[i : i + 16], y[i : i + 16])
        train_acc = float(train_metric.result())
        train_metric.reset_state()
        test_step(X[48:], y[48:])
        told.append((float(loss_value), train_acc, float(val_metric.result())))
        val_metric.reset_state()

    same = keras.models.clone_model(model)
    fill(same)
    same.compile(keras.optimizers.SGD(0.1), loss_fn, metrics=["accuracy"])
    history = same.fit(
        X[:48],
        y[:48],
        batch_size=16,
        epochs=3,
        shuffle=False,
        validation_data=(X[48:], y[48:]),
        verbose=0,
    ).history
    np.testing.assert_allclose([t[1] for t in told], history["accuracy"], rtol=1e-6)
    np.testing.assert_allclose([t[2] for t in told], history["val_accuracy"], rtol=1e-6)
    for a, b in zip(model.get_weights(), same.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    return told


def metric_in_the_call_of_a_layer(keras: Any) -> Any:
    """Values that a layer reports: with a metric of its own, and with add_metric."""

    class Logging(keras.layers.Layer):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.magnitude = keras.metrics.Mean(name="magnitude")

        def call(self, inputs: Any) -> Any:
            size = keras.ops.mean(keras.ops.abs(inputs))
            self.magnitude.update_state(size)
            self.add_metric(size, name="added")
            return inputs

    inputs = keras.Input(shape=(5,))
    model = fill(keras.Model(inputs, keras.layers.Dense(1)(Logging()(inputs))))
    model.compile("sgd", "mse")
    history = model.fit(X, Y, epochs=2, batch_size=16, validation_data=(X[:8], Y[:8]), verbose=0)
    wanted = float(np.abs(X).mean())
    for name in ("magnitude", "added"):
        np.testing.assert_allclose(history.history[name], [wanted, wanted], rtol=1e-5)
        np.testing.assert_allclose(
            history.history[f"val_{name}"], [float(np.abs(X[:8]).mean())] * 2, rtol=1e-5
        )
    return history.history


OWN_SCRIPTS = [
    train_step_of_a_class,
    lower_level,
    adversarial,
    vae_train_step,
    bare_loop,
    metric_in_the_call_of_a_layer,
]
