"""An older name of a tool for sequences; see `laminar.utils`."""

from laminar.utils.sequences import pad_sequences as pad_sequences
