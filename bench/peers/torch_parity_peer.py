"""PyTorch's side of torch_parity.py: the weights and batches that both sides read, the first step
in any precision, and trainings in the batches' order or in another."""

import math

import safetensors.torch
import timm
import torch

import torch_modes as modes

CLASSES = 10
SEED = 1
# Pictures of a class have a pattern of their own under the noise, the same within a patch.
PATTERN_SIDE = 14
PATTERN_SIZE = 0.25


class Peer:
    """A model, its first weights, and batches. Orders: None is that of the batches, from the first
    again where they end; a seed is another one of all images."""

    def __init__(self, options, weights):
        torch.manual_seed(SEED)
        self.options = options
        self.device = modes.device_at(options.device)
        model = timm.create_model(options.model, pretrained=False, num_classes=CLASSES)
        self.depth = len(model.blocks)
        self.weights = {name: value.clone() for name, value in model.state_dict().items()}
        safetensors.torch.save_file(self.weights, weights)
        count = options.batch * options.batches
        shape = model.default_cfg["input_size"]
        self.labels = torch.randint(0, CLASSES, (count,))
        patterns = torch.randn(CLASSES, shape[0], PATTERN_SIDE, PATTERN_SIDE) * PATTERN_SIZE
        patterns = torch.nn.functional.interpolate(patterns, size=shape[1:])
        self.images = torch.randn(count, *shape) + patterns[self.labels]

    def write(self, path, factors):
        """The file of the batches, with a factor of the images for each step."""
        safetensors.torch.save_file({"images": self.images, "labels": self.labels,
                                     "factors": torch.tensor(factors)}, path)

    @staticmethod
    def read(path):
        """What a step gave, by name."""
        return safetensors.torch.load_file(path)

    @staticmethod
    def errors(first, reference):
        """Name -> how far each tensor of a step is from that of the reference, of its size."""
        apart = {}
        for name, wanted in reference.items():
            wanted = wanted.double()
            found = first[name].double().reshape(wanted.shape)
            apart[name] = float((found - wanted).norm() / wanted.norm())
        return apart

    @staticmethod
    def worst(errors):
        """The error of the logits, and the largest of a gradient."""
        gradients = [error for name, error in errors.items() if name != "logits"]
        nan = any(math.isnan(error) for error in gradients)
        return {"logits": errors["logits"], "gradients": math.nan if nan else max(gradients)}

    def first(self, mode, scaling):
        """Logits and gradients of the first step, on the host."""
        training = self._training(mode, None, scaling, 1)
        _, logits = training.forward_and_backward(0, 1.0)
        scale = training.scaler.get_scale()
        step = {f"gradient:{name}": each.grad.double().cpu() / scale
                for name, each in training.model.named_parameters()}
        return step | {"logits": logits.double().cpu()}

    def train(self, mode, order, scaling, factors):
        """Losses, scales and skips of a training, a step for each factor of the images."""
        training = self._training(mode, order, scaling, len(factors))
        losses, scales = [], []
        before = [training.scaler.get_scale()]
        for step, factor in enumerate(factors):
            losses.append(training.forward_and_backward(step, factor)[0])
            scales.append(training.update())
            before.append(scales[-1])
        return {"losses": torch.stack(losses).double().tolist(), "scales": scales,
                "skipped": [after < scale for scale, after in zip(before, scales)]}

    def versions(self):
        return modes.versions()

    def _training(self, mode, order, scaling, steps):
        model = timm.create_model(self.options.model, pretrained=False, num_classes=CLASSES)
        model.load_state_dict(self.weights)
        places = self._places(order, steps * self.options.batch)
        return Training(self, model, mode, places, scaling)

    def _places(self, order, count):
        """Where in all images those of a training stand."""
        images = len(self.labels)
        if order is None:
            return torch.arange(count) % images
        random = torch.Generator().manual_seed(order)
        epochs = [torch.randperm(images, generator=random)
                  for _ in range(math.ceil(count / images))]
        return torch.cat(epochs)[:count]


class Training:
    """A model that learns, step by step."""

    def __init__(self, peer, model, mode, places, scaling):
        modes.choose_products(mode)
        self.peer = peer
        self.mode = mode
        self.places = places
        self.model = model.to(peer.device, modes.stored_as(mode)).train()
        self.wide = self._wide_parameters()
        self.optimizer = modes.adamw_for(self.wide or self.model.parameters(), mode,
                                         peer.options.rate)
        self.scaler = modes.scaler_for(peer.device, mode, **scaling)

    def forward_and_backward(self, step, factor):
        """Loss and logits; nobody has waited for them."""
        batch = self.peer.options.batch
        places = self.places[step * batch:(step + 1) * batch]
        device = self.peer.device
        images = (self.peer.images[places].to(device) * factor).to(modes.stored_as(self.mode))
        self.model.zero_grad(set_to_none=True)
        with modes.autocast(device, self.mode):
            logits = self.model(images)
            wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
            loss = torch.nn.functional.cross_entropy(wide, self.peer.labels[places].to(device))
        self.scaler.scale(loss).backward()
        return loss.detach(), logits.detach()

    def _wide_parameters(self):
        """Parameters of 16 bits as f32, for an update as halfwatt's: AdamW keeps moments, which
        are too small for fp16 and change too little for bf16, in the dtype of its parameters. Empty
        where these are wide already."""
        narrow = modes.stored_as(self.mode).itemsize < 4
        return [each.detach().float() for each in self.model.parameters()] if narrow else []

    @torch.no_grad()
    def update(self):
        """The scale after it."""
        pairs = list(zip(self.wide, self.model.parameters()))
        for wide, narrow in pairs:
            wide.copy_(narrow)
            wide.grad = narrow.grad.float()
        self.scaler.step(self.optimizer)
        for wide, narrow in pairs:
            narrow.copy_(wide)
        self.scaler.update()
        return self.scaler.get_scale()
