"""How PyTorch computes in each of halfwatt's precisions, for all scripts of its side: what it casts
to, its loss scale, its AdamW, and of which versions it is."""

import timm
import torch

AUTOCAST = {"amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}
WHOLE_MODEL = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp64": torch.float64}


def device_at(place):
    """The device of `cpu` or `gpu:N`."""
    return torch.device("cpu" if place == "cpu" else place.replace("gpu", "cuda"))


def choose_products(precision):
    """Has all products of f32 to come computed in tf32, or none."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"


def stored_as(precision):
    """What parameters and images are stored as."""
    return WHOLE_MODEL.get(precision, torch.float32)


def autocast(device, precision):
    """A context for the forward pass and the loss."""
    dtype = AUTOCAST.get(precision)
    return torch.autocast(device.type, dtype, enabled=dtype is not None)


def scaler_for(device, precision, scale=65536, interval=2000):
    """The loss scale, which is `scale` at first and grows after `interval` steps; one that does
    nothing where PyTorch has none."""
    return torch.amp.GradScaler(device.type, init_scale=scale, growth_interval=interval,
                                enabled=precision == "amp-fp16")


def adamw_for(parameters, precision, rate):
    """AdamW: vit_peer.h has the same."""
    eps = 1e-4 if precision == "fp16" else 1e-8  # 1e-8 is 0 in fp16
    return torch.optim.AdamW(parameters, lr=rate, weight_decay=0.01, eps=eps, fused=True)


def versions():
    cudnn = torch.backends.cudnn.version()
    return {"torch": torch.__version__, "timm": timm.__version__,
            "cuda": torch.version.cuda or "unknown", "cudnn": str(cudnn or "unknown")}
