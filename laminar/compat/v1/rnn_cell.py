"""`tf.nn.rnn_cell`: cells of recurrent networks."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "BasicLSTMCell": ".recurrent:BasicLSTMCell",
    "BasicRNNCell": ".recurrent:BasicRNNCell",
    "DeviceWrapper": ".recurrent_wrappers:DeviceWrapper",
    "DropoutWrapper": ".recurrent_wrappers:DropoutWrapper",
    "GRUCell": ".recurrent:GRUCell",
    "LSTMCell": ".recurrent:LSTMCell",
    "LSTMStateTuple": ".recurrent:LSTMStateTuple",
    "MultiRNNCell": ".recurrent_wrappers:MultiRNNCell",
    "RNNCell": ".recurrent:RNNCell",
    "ResidualWrapper": ".recurrent_wrappers:ResidualWrapper",
}

__getattr__, __dir__ = face(__name__, NAMES)
