"""The numbers of the goldens: SplitMix64 and Box-Muller as in src/base/rng.cpp, so that a test
in C++ can draw the same ones. Used by micro_vit.py and vit_tiny.py.
"""

import math

import numpy as np
import torch


class Rng:
    """halfwatt::Rng, many draws at a time."""

    def __init__(self, seed):
        self.state = np.uint64(seed)

    def uniforms(self, count):
        """The next `count` draws in [0, 1)."""
        turns = np.arange(1, count + 1, dtype=np.uint64)
        mixed = self.state + turns * np.uint64(0x9E3779B97F4A7C15)
        self.state = mixed[-1]
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
        return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def normals(self, *shape):
        """The next draws of a standard normal, innermost extent fastest: [shape] f64."""
        pairs = self.uniforms(2 * math.prod(shape)).reshape(-1, 2).tolist()
        # One by one through the C library: numpy's vectorised log and cos differ in last bits.
        drawn = [math.sqrt(-2.0 * math.log(1.0 - one)) * math.cos(2.0 * math.pi * two)
                 for one, two in pairs]
        return torch.tensor(drawn, dtype=torch.float64).reshape(shape)


def as_stored(values):
    """`values` rounded to f32 and kept as f64: what a file of f32 gives both precisions."""
    return values.to(torch.float32).to(torch.float64)


def is_norm_weight(name):
    """Whether `name` is the scale of a LayerNorm, which lies about 1."""
    return name.endswith(("norm.weight", "norm1.weight", "norm2.weight"))


def draw_weights(model, rng, std_of):
    """Fills the parameters of `model` in the order of its state_dict: std_of(name, shape) times
    a normal draw, plus 1 for the scales of LayerNorm, rounded to f32.
    """
    with torch.no_grad():
        for name, values in model.state_dict().items():
            drawn = rng.normals(*values.shape) * std_of(name, values.shape)
            values.copy_(as_stored(drawn + 1.0 if is_norm_weight(name) else drawn))
