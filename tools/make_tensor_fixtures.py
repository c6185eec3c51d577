#!/usr/bin/env python3
"""Writes tests/data/: small tensor files made by the real writers, and expected.json with what they hold (dtype, shape,
SHA-256 of the row-major little-endian bytes). Needs numpy, ml_dtypes, safetensors and torch; the files are checked in, so
only who changes them needs those (they were made with numpy 2.4.6, safetensors 0.8.0, torch 2.15.0)."""
import hashlib
import io
import json
import os
import pathlib
import pickle
import zipfile

import ml_dtypes
import numpy as np
import safetensors.torch
import torch

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/data"
NAMES = {"float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
         "int16": "I16", "int8": "I8", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "bool": "BOOL",
         "complex64": "C64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e4m3fnuz": "F8_E4M3FNUZ",
         "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0"}
expected = {}


def of(dtype, shape, data):
    return {"dtype": dtype, "shape": list(shape), "sha256": hashlib.sha256(data).hexdigest()}


def of_torch(t):
    raw = t.detach().contiguous().reshape(-1).view(torch.uint8) if t.numel() else torch.zeros(0, dtype=torch.uint8)
    return of(NAMES[str(t.dtype)[6:]], t.shape, raw.numpy().tobytes())


def of_numpy(a, dtype=None):
    little = np.ascontiguousarray(a).astype(a.dtype.newbyteorder("<")) if a.dtype.byteorder == ">" else np.ascontiguousarray(a)
    return of(dtype or NAMES[a.dtype.name], a.shape, little.tobytes())


def flatten(value, name=""):
    if isinstance(value, torch.Tensor):
        return {name or "tensor": of_torch(value)}
    out = {}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    for key, v in items:
        out |= flatten(v, f"{name}.{key}" if name else str(key))
    return out


def save_pt(name, value, **options):
    torch.save(value, OUT / name, **options)
    expected[name] = flatten(value)


def main():
    OUT.mkdir(exist_ok=True)
    torch.manual_seed(7)
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    save_pt("bare.pt", torch.tensor([[1.0, -0.0, float("nan")]], dtype=torch.bfloat16))
    save_pt("views.pt", {"base": base, "t": base.t(), "row": base[2], "step": base[::2, 1::2], "expand": base[:1].expand(3, 6),
                         "scalar": torch.tensor(3.5), "empty": torch.zeros(0, 5), "part": base[1:3]})
    codes = torch.arange(256, dtype=torch.int16).to(torch.uint8)
    save_pt("fp8.pt", {k: codes.view(getattr(torch, k)) for k in NAMES if k.startswith("float8")})
    save_pt("dtypes.pt", {k: (torch.arange(6) % 2 == 0) if k == "bool" else torch.arange(6).to(getattr(torch, k)).reshape(2, 3)
                          for k in NAMES if not k.startswith("float8")})
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4))
    save_pt("state_dict.pt", model.state_dict())
    save_pt("parameters.pt", {"p": list(model.parameters())})
    save_pt("sglang.pt", {"value": base[:2].to(torch.bfloat16), "meta": {
        "step": 0, "rank": 1, "dump_index": 12, "name": "attn_out", "layer_id": 7, "world_size": 2, "scale": 0.5,
        "sglang_parallel_info": {"tp_rank": 1, "tp_size": 2}, "recompute_status": None, "graph": False}})
    save_pt("nested.pt", [base[0], {"a": (base[1], [base[2]])}, torch.Size([3, 4]), torch.float8_e4m3fn, 2**80])
    save_pt("protocol4.pt", {"x": base, "y": [torch.tensor([2**40])]}, pickle_protocol=4)
    torch.serialization.set_crc32_options(False)
    save_pt("no_crc.pt", {"x": base})
    torch.serialization.set_crc32_options(True)
    # Refused, each for its own reason.
    torch.save(base, OUT / "bad_legacy.pt", _use_new_zipfile_serialization=False)

    class Evil:
        def __reduce__(self):
            return os.system, ("touch samebits_was_fooled",)

    torch.save({"x": base, "y": Evil()}, OUT / "bad_evil.pt")
    torch.save(torch.nn.Linear(2, 2), OUT / "bad_module.pt")
    loop = []
    loop.append(loop)
    torch.save({"x": loop}, OUT / "bad_cycle.pt")
    bomb = [0] * 10
    for _ in range(10):
        bomb = [bomb] * 10
    torch.save({"x": bomb}, OUT / "bad_bomb.pt")
    torch.save({"x": torch.complex(base, base).conj()}, OUT / "bad_conj.pt")

    f32 = np.array([[1.0, -0.0, np.nan], [np.inf, 1e-45, -2.5]], dtype=np.float32)
    arrays = {"f32": f32, "fortran": np.asfortranarray(np.arange(24, dtype=np.int16).reshape(2, 3, 4)),
              "big": np.arange(5, dtype=">i4"), "bigc": np.array([1 + 2j], dtype=">c8"), "scalar": np.float64(7), "bool": np.array([True, False]),
              "empty": np.zeros((0, 3), dtype=np.uint64), "half": np.arange(4, dtype=np.float16)}
    for name, a in arrays.items():
        np.save(OUT / f"{name}.npy", a)
        expected[f"{name}.npy"] = {"array": of_numpy(np.asarray(a))}
    bf16 = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    np.save(OUT / "bf16.npy", bf16)
    expected["bf16.npy"] = {"array": of_numpy(bf16)}
    for version in ((2, 0), (3, 0)):
        with open(OUT / f"v{version[0]}.npy", "wb") as f:
            np.lib.format.write_array(f, f32, version=version)
        expected[f"v{version[0]}.npy"] = {"array": of_numpy(f32)}
    np.savez(OUT / "stored.npz", **arrays)
    np.savez_compressed(OUT / "deflated.npz", **arrays)
    for name in ("stored.npz", "deflated.npz"):
        expected[name] = {k: of_numpy(np.asarray(a)) for k, a in arrays.items()}
    np.save(OUT / "bad_object.npy", np.array([{}, None], dtype=object), allow_pickle=True)
    np.save(OUT / "bad_struct.npy", np.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")]))

    tensors = {"w": base.to(torch.bfloat16), "q": codes.view(torch.float8_e4m3fn).reshape(16, 16), "s": torch.tensor(2.0),
               "e": torch.zeros(0, 3), "i": torch.arange(3), "é\n\"": torch.ones(2, dtype=torch.float16)}
    safetensors.torch.save_file(tensors, OUT / "plain.safetensors", metadata={"format": "pt", "who": "tést"})
    expected["plain.safetensors"] = {k: of_torch(t) for k, t in tensors.items()}

    # A member whose name climbs out of the archive; torch would never write it.
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as z:
        z.writestr(zipfile.ZipInfo("../../escape.npy"), (OUT / "f32.npy").read_bytes())
    (OUT / "bad_escape.npz").write_bytes(buffer.getvalue())
    # ZIP64 throughout, as writers of huge files do.
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as z:
        with z.open(zipfile.ZipInfo("a.npy"), "w", force_zip64=True) as f:
            f.write((OUT / "f32.npy").read_bytes())
    (OUT / "zip64.npz").write_bytes(buffer.getvalue())
    expected["zip64.npz"] = {"a": of_numpy(f32)}
    (OUT / "bad_pickle.pt").write_bytes(pickle.dumps({"a": 1}))
    (OUT / "expected.json").write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
