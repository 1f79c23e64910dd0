"""Reinforcement learning with a loop of one's own: a pole is balanced on a cart.

    python examples/reinforcement.py [--episodes 800]

Sixteen carts are played at once; the policy is a network, run as a compiled function at each step,
and learns from whole episodes: an action that was followed by more reward than usual becomes
likelier. The physics are those of the classic task.

Source: Williams, "Simple statistical gradient-following algorithms for connectionist reinforcement
learning", Machine Learning 8 (1992); Barto, Sutton and Anderson, "Neuronlike adaptive elements that
can solve difficult learning control problems", IEEE SMC-13 (1983), for the task.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import laminar
from laminar import engine, layers, ops

CARTS, LONGEST, DISCOUNT = 16, 200, 0.99


class Carts:
    """Many carts with a pole each; a pole that leans more than 12 degrees has fallen."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def reset(self) -> np.ndarray:
        self.state = self.rng.uniform(-0.05, 0.05, (CARTS, 4))
        return self.state.astype("float32")

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Push left (0) or right (1) for 20 ms; the new states, and which poles still stand."""
        x, speed, angle, turn = self.state.T
        force = np.where(actions == 1, 10.0, -10.0)
        push = (force + 0.05 * turn**2 * np.sin(angle)) / 1.1
        fall = (9.8 * np.sin(angle) - np.cos(angle) * push) / (
            0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1)
        )
        change = push - 0.05 * fall * np.cos(angle) / 1.1
        self.state = np.stack([x, speed, angle, turn], 1) + 0.02 * np.stack(
            [speed, change, turn, fall], 1
        )
        stands = (abs(self.state[:, 0]) < 2.4) & (abs(self.state[:, 2]) < np.radians(12))
        return self.state.astype("float32"), stands


def returns(rewards: np.ndarray) -> np.ndarray:
    """What follows each step, discounted: (steps, carts)."""
    found = np.zeros_like(rewards)
    later = np.zeros(rewards.shape[1])
    for i in range(len(rewards) - 1, -1, -1):
        later = rewards[i] + DISCOUNT * later
        found[i] = later
    return found


class Agent:
    """The policy, and how it learns."""

    def __init__(self) -> None:
        self.policy = laminar.Sequential(
            [layers.Input((4,)), layers.Dense(32, activation="tanh"), layers.Dense(2)]
        )
        self.optimizer = laminar.optimizers.Adam(1e-2)

    @laminar.function
    def act(self, states: Any) -> Any:
        """An action for each state, drawn from the policy."""
        return laminar.random.categorical(self.policy(states), 1)[:, 0]

    @laminar.function(
        input_signature=[
            engine.TensorSpec((None, 4), "float32"),
            engine.TensorSpec((None,), "int32"),
            engine.TensorSpec((None,), "float32"),
        ]
    )
    def learn(self, states: Any, actions: Any, advantages: Any) -> Any:
        """One step up the gradient of sum(advantage * log probability of the action)."""
        weights = self.policy.trainable_weights
        with engine.GradientTape() as tape:
            scores = self.policy(states)
            losses = laminar.losses.sparse_categorical_crossentropy(actions, scores, True)
            loss = ops.mean(losses * advantages)
        self.optimizer.apply(tape.gradient(loss, weights), weights)
        return loss


def play(agent: Agent, carts: Carts) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """States, actions, rewards and which carts still stood, each (steps, carts, ...)."""
    states, alive = [carts.reset()], [np.ones(CARTS, bool)]
    actions: list[np.ndarray] = []
    while alive[-1].any() and len(actions) < LONGEST:
        actions.append(np.asarray(agent.act(states[-1])))
        state, stands = carts.step(actions[-1])
        states.append(state)
        alive.append(alive[-1] & stands)
    stood = np.array(alive[:-1])
    return np.array(states[:-1]), np.array(actions), np.array(alive[1:], "float64"), stood


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    """Gives how many steps poles stand at first, and at the end (at most 200)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=800)
    options = parser.parse_args(arguments)
    laminar.set_random_seed(0)
    agent, carts, lengths = Agent(), Carts(seed=0), []
    for episode in range(0, options.episodes, CARTS):
        states, actions, rewards, stood = play(agent, carts)
        lengths.append(float(stood.sum() / CARTS))
        later = returns(rewards)[stood]
        advantages = ((later - later.mean()) / (later.std() + 1e-8)).astype("float32")
        agent.learn(states[stood], actions[stood], advantages)
        if episode // CARTS % 5 == 0:
            print(f"episode {episode:4d}: poles stand for {lengths[-1]:.1f} steps")
    return lengths[0], float(np.mean(lengths[-3:]))


if __name__ == "__main__":
    main()
