"""Products of pairs of bfloat16, where the processor multiplies them faster than float32."""
