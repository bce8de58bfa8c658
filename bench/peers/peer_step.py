"""peer_step.py PEER MODEL MODE BATCH THREADS SECONDS: prints the median step of a peer in seconds.
PEER: eager|compiled fp32|bf16|autocast, or onnxruntime fp32. Called by peers.py, in a process of its
own."""

import os
import statistics
import sys
import tempfile
import time

import timm
import torch

LEAST_STEPS = 10
WARM_UP = 3


def timed(step, seconds):
    """Median seconds of a step, after a warm-up."""
    for _ in range(WARM_UP):
        step()
    all_of_them = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(all_of_them) < LEAST_STEPS:
        begin = time.perf_counter()
        step()
        all_of_them.append(time.perf_counter() - begin)
    return statistics.median(all_of_them)


def inference(model, images, autocast):
    def step():
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            model(images)
    return step


def training(model, images, autocast):
    """Forward, cross entropy, backward and AdamW, as a step of `halfwatt bench --mode train` has it."""
    labels = torch.randint(0, 1000, (images.shape[0],))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05, fused=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = torch.nn.functional.cross_entropy(model(images).float(), labels)
        loss.backward()
        optimizer.step()
        if not torch.isfinite(loss):
            raise SystemExit("the loss is not finite: a dead run has no figure")
    return step


def by_onnxruntime(model, images, threads):
    import onnxruntime  # pylint: disable=import-outside-toplevel
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        torch.onnx.export(model, (images,), path, input_names=["images"], dynamo=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {"images": images.numpy()}
    return lambda: session.run(None, feed)


def main():
    peer, name, mode, batch, threads, seconds = sys.argv[1:]
    how, precision = peer.split()
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    model = timm.create_model(name, pretrained=False, num_classes=1000)
    model = model.train() if mode == "train" else model.eval()
    images = torch.randn(int(batch), 3, 224, 224)
    if precision == "bf16":
        model, images = model.to(torch.bfloat16), images.to(torch.bfloat16)
    if how == "onnxruntime":
        step = by_onnxruntime(model, images, int(threads))
    else:
        called = torch.compile(model, dynamic=False) if how == "compiled" else model
        make = training if mode == "train" else inference
        step = make(called, images, precision == "autocast")
    print(timed(step, float(seconds)))


main()
