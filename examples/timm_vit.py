"""Trains a ViT of timm on random pictures, as somebody would who never heard of halfwatt:

    pip install timm tqdm
    python timm_vit.py --model vit_base_patch16_224 --batch 160

There is nothing of halfwatt in it. To see what it does at the limit that is in force:

    halfwatt sweep --measure-only --progress tqdm --items 160 --unit image -- \\
        python timm_vit.py --batch 160
"""

import argparse

import timm
import torch
from tqdm import tqdm


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="vit_base_patch16_224")
    parser.add_argument("--batch", type=int, default=160)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="bf16")
    options = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    model = timm.create_model(options.model, num_classes=1000).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=device == "cuda")
    loss_of = torch.nn.CrossEntropyLoss()
    with tqdm(total=options.steps, unit="step") as bar:
        for step in range(options.steps):
            pictures = torch.randn(options.batch, 3, 224, 224, device=device)
            labels = torch.randint(1000, (options.batch,), device=device)
            with torch.autocast(device, torch.bfloat16, enabled=options.precision == "bf16"):
                loss = loss_of(model(pictures), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step % 10 == 9:
                bar.set_postfix(loss=f"{loss.item():.4f}")
            bar.update()


if __name__ == "__main__":
    main()
