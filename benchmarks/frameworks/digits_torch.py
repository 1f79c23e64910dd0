"""What examples/digits.py does, in torch; without saving the model.

python -m benchmarks.frameworks.digits_torch EPOCHS
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ..problems import digits
from .in_torch import ImageFlatten, tensor


def network() -> Any:
    """Two convolutions, one hidden layer."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        ImageFlatten(),
        nn.Dropout(0.4),
        nn.Linear(1024, 128),
        nn.ReLU(),
        nn.Dropout(0.4),
        nn.Linear(128, 10),
    ).to(memory_format=torch.channels_last)


def accuracy(net: Any, x: Any, y: Any) -> float:
    net.eval()
    with torch.inference_mode():
        found = float((net(x).argmax(1) == y).float().mean())
    net.train()
    return found


def main(epochs: int) -> None:
    """Train with a validation after each epoch, print the accuracy."""
    torch.manual_seed(1)
    problem = digits(epochs)
    test, train = ((tensor(x), torch.from_numpy(y).long()) for x, y in problem.test_and_train)
    x, y = train
    count = len(x) - len(x) // 10
    net = network()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, eps=1e-7, fused=True)
    for _ in range(epochs):
        for rows in torch.randperm(count).split(problem.batch):
            optimizer.zero_grad(set_to_none=True)
            functional.cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()
        accuracy(net, x[count:], y[count:])
    print(f"test accuracy {accuracy(net, *test):.2%}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
