"""Times PyTorch's dense attention, `scaled_dot_product_attention`, on the shape of the sparse-attention micro-benchmark.

    python3 bench/peers/torch_attention.py [--jobs 600] [--batch 32]

Prints JSON: the median time between CUDA events after a warm-up, for each number format and each implementation that takes this shape.
Compare it, on the same card, with

    cargo run --release -p temponet-paper --features cuda --example attention_cuda
"""

import argparse
import json
import statistics

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

WIDTH, HEADS = 128, 4
WARM_UP, TIMED = 50, 300
IMPLEMENTATIONS = {
    "math": SDPBackend.MATH,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}


def median_ms(q, k, v):
    times = []
    for turn in range(WARM_UP + TIMED):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        scaled_dot_product_attention(q, k, v)
        end.record()
        end.synchronize()
        if turn >= WARM_UP:
            times.append(start.elapsed_time(end))
    return round(statistics.median(times), 4)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=600)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("no GPU")
    rows = args.jobs + 1
    generator = torch.Generator("cuda").manual_seed(1)
    # Rows of all heads side by side, the layout of a layer.
    inputs = [
        4 * torch.rand(args.batch, rows, HEADS, WIDTH // HEADS, device="cuda", generator=generator) - 2 for _ in range(3)
    ]
    figures = {}
    kinds = [("float32", torch.float32, False), ("tf32", torch.float32, True), ("bfloat16", torch.bfloat16, False)]
    for kind, dtype, allow_tf32 in kinds:
        torch.backends.cuda.matmul.allow_tf32 = allow_tf32
        q, k, v = (x.to(dtype).transpose(1, 2) for x in inputs)
        for name, implementation in IMPLEMENTATIONS.items():
            try:
                with sdpa_kernel(implementation):
                    figures[f"{kind} {name}"] = median_ms(q, k, v)
            except RuntimeError:
                continue
    print(json.dumps({
        "torch": torch.__version__, "card": torch.cuda.get_device_name(), "jobs": args.jobs, "rows": rows,
        "batch": args.batch, "width": WIDTH, "heads": HEADS, "median_ms": figures,
    }, indent=2))


if __name__ == "__main__":
    main()
