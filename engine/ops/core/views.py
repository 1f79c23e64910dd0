"""Which operations move no data."""

# Whatever the size of what they are given, it is looked at in another way, or handed on.
MOVES_NOTHING = frozenset(
    {"Const", "Dim", "Enter", "Exit", "ExpandDims", "Identity", "LoopCond", "Merge"}
    | {"NextIteration", "NoOp", "Placeholder", "Rank", "ReadVariable", "Reshape", "Shape", "Size"}
    | {"Squeeze", "StopGradient", "Switch", "Transpose", "VarHandle"}
)
